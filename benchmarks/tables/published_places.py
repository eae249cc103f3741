"""The places of a published table that can be run here, and all that can change their numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.tables.protocol import Statement, StatementKind
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.table import ON_TEST
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.expression import parse


@dataclass(frozen=True)
class PublishedPlace:
    """One place of a table with a published value."""

    resolved: Resolved
    line: Line
    cell: ResolvedCell

    @property
    def names(self) -> tuple[str, str]:
        return self.line.name, self.cell.column

    @property
    def work(self) -> Experiment:
        """Return the experiment that fills the place, or the first of several."""
        return self.cell.work

    @cached_property
    def ours(self) -> dict[StatementKind, dict[str, Any]]:
        """All that can change its number, as we have it; idle keys are left out."""
        recipe = make_recipe(self.work.domain, self.work.recipe)
        idle = recipe.idle(self.work.trained)
        values = recipe.model_dump(mode="json")
        return {
            "recipe": {key: value for key, value in values.items() if key not in idle},
            "params": self.params,
            "evaluation": {**recipe.evaluation, **self.settings},
        }

    @property
    def params(self) -> dict[str, Any]:
        """The loss's, defaults included, and the weights of the later terms of a sum."""
        loss = self.work.loss.complete
        terms = parse(loss.name)[1:]
        return {**loss.params, **{f"weight of {term}": weight for weight, term in terms}}

    @property
    def settings(self) -> dict[str, Any]:
        """Return the evaluation's settings in the table and the recipe."""
        settings: dict[str, Any] = {"seeds": len(self.resolved.table.seeds)}
        if ON_TEST in self.metric:
            settings["probe epoch scored"] = "the best on the test images"
        if self.work.trained:
            settings |= {"model": self.model, "parameters": "as published"}
        return settings

    @property
    def metric(self) -> str:
        """The one that is shown."""
        return self.resolved.metrics[self.cell.column] or ""

    @property
    def model(self) -> str:
        """Return which model of a training is scored."""
        if epoch := self.metric.partition("@")[2]:
            return f"that after {epoch} epochs"
        steps = self.work.full_recipe.validate_every
        return f"the best on validation data, every {steps} steps" if steps else "the last"

    def statement(self, kind: StatementKind, key: str) -> Statement | None:
        """The last one on the key."""
        said = (s for s in self.statements if key in getattr(s, kind))
        return next(iter(reversed(list(said))), None)

    @cached_property
    def statements(self) -> list[Statement]:
        place = *self.names, self.work.domain, self.work.dataset
        return [s for s in self.resolved.table.protocol.facts if s.holds(*place)]


class Coverage(NamedTuple):
    """How many values a table has, how many of them can be run here, and how many are done."""

    values: int
    runnable: int
    done: int


def coverage(resolved: Resolved) -> Coverage:
    """Count the printed values of a table; of one without any its places."""
    cells = [cell for _, _, cell in printed_values(resolved)] or [*resolved.cells]
    there = [cell for cell in cells if cell]
    return Coverage(len(cells), len(there), sum(bool(cell.ok) for cell in there))


def printed_values(resolved: Resolved) -> Iterator[tuple[Line, str, ResolvedCell | None]]:
    """Yield the row and column of each printed value, with its place if it can be run here.

    An average is none, as it follows from others.
    """
    for line in resolved.lines:
        for column in line.row.paper:
            if column in resolved.table.columns:
                yield line, column, line.cells.get(column)


def published_places(resolved: Resolved) -> Iterator[PublishedPlace]:
    """Yield the places of printed values that can be run here."""
    for line, _, cell in printed_values(resolved):
        if cell:
            yield PublishedPlace(resolved, line, cell)
