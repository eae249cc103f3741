"""Our protocol beside the paper's, key by key, in four lists that leave nothing out.

What is the same, what deviates, what the paper leaves open, and what nobody has compared yet: each
recipe key, each parameter of the loss and each setting of the evaluation stands in exactly one of
them for each place. What a paper says is what a `schema.Statement` with a source says, never what
our own recipes do.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.schema import OPEN, STATEMENT_KINDS, Statement, StatementKind
from contrastbench.benchmarks.tables.table import ON_TEST
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.expression import parse

SAME, DEVIATES = "Same as the paper", "Deviates"
LEFT_OPEN, UNCOMPARED = "Open in the paper", "Not yet compared"
HEADS = {
    SAME: ["Where", "What", "Said in"],
    DEVIATES: ["Where", "What", "Paper", "Ours", "Why"],
    LEFT_OPEN: ["Where", "Ours", "Why"],
    UNCOMPARED: ["Where", "Ours"],
}


@dataclass(frozen=True)
class PublishedPlace:
    """One place of a table with a published value, which can be run here."""

    resolved: Resolved
    line: Line
    cell: ResolvedCell

    @property
    def names(self) -> tuple[str, str]:
        return self.line.name, self.cell.column

    @property
    def work(self) -> Experiment:
        return self.cell.work

    @cached_property
    def ours(self) -> dict[StatementKind, dict[str, Any]]:
        """All that can change its number, as we have it; idle keys are left out."""
        recipe, loss = make_recipe(self.work.domain, self.work.recipe), self.work.loss.complete
        idle, values = recipe.idle(self.work.trained), recipe.model_dump(mode="json")
        weights = {f"weight of {term}": weight for weight, term in parse(loss.name)[1:]}
        return {
            "recipe": {key: value for key, value in values.items() if key not in idle},
            "params": {**loss.params, **weights},
            "evaluation": {**recipe.evaluation, **self.settings},
        }

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"seeds": len(self.resolved.table.seeds)}
        metric = self.resolved.metrics[self.cell.column] or ""
        if ON_TEST in metric:
            settings["probe epoch scored"] = "the best on the test images"
        if self.work.trained:
            epoch, steps = metric.partition("@")[2], self.work.full_recipe.validate_every
            model = f"the best on validation data, every {steps} steps" if steps else "the last"
            settings["model"] = f"that after {epoch} epochs" if epoch else model
            settings["parameters"] = "as published"
        return settings

    def statement(self, kind: StatementKind, key: str) -> Statement | None:
        said = (s for s in reversed(self.statements) if key in getattr(s, kind))
        return next(said, None)

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
    for line, _, cell in printed_values(resolved):
        if cell:
            yield PublishedPlace(resolved, line, cell)


@dataclass(frozen=True)
class Finding:
    """The result of comparing one key."""

    verdict: str  # one of the four
    what: str
    ours: str
    paper: str = ""
    source: str = ""
    why: str = ""

    @property
    def cells(self) -> list[str]:
        value = f"{self.what}: {self.ours}"
        return {
            SAME: [value, self.source],
            DEVIATES: [self.what, f"{self.paper}, {self.source}", self.ours, self.why],
            LEFT_OPEN: [value, self.why],
            UNCOMPARED: [value],
        }[self.verdict]


PlacesByFinding = dict[Finding, list[tuple[str, str]]]  # and the rows and columns where it holds


def findings(place: PublishedPlace) -> Iterator[Finding]:
    """Yield a finding for each key of a place, and the deviations that no key shows."""
    for kind in STATEMENT_KINDS:
        for key, value in place.ours[kind].items():
            yield finding(place, kind, key, value)
    for statement in place.statements:
        for known in statement.differs:
            about = known.what, known.ours, known.paper, statement.source, known.why
            yield Finding(DEVIATES, *about)


def finding(place: PublishedPlace, kind: StatementKind, key: str, ours: Any) -> Finding:
    statement = place.statement(kind, key)
    if statement is None:
        return Finding(UNCOMPARED, key, value_words(ours))
    says, source = getattr(statement, kind)[key], statement.source
    if source == OPEN:
        return Finding(LEFT_OPEN, key, value_words(ours), why=says)
    if says == ours:
        return Finding(SAME, key, value_words(ours), source=source)
    why = statement.why.get(key, "")
    return Finding(DEVIATES, key, value_words(ours), value_words(says), source, why)


def audit_lists(every: list[PublishedPlace]) -> dict[str, list[list[str]]]:
    """Return the lines of each verdict, its header first; keys that agree in all else share one."""
    places = grouped((found, place.names) for place in every for found in findings(place))
    return {verdict: [HEADS[verdict], *shared_lines(verdict, places, every)] for verdict in HEADS}


def shared_lines(
    verdict: str, places: PlacesByFinding, every: list[PublishedPlace]
) -> Iterator[list[str]]:
    lines: dict[tuple[str, ...], list[str]] = {}
    for finding, where in sorted(places.items(), key=lambda item: -len(item[1])):
        if finding.verdict == verdict:
            first, *rest = finding.cells
            alone = [first] if verdict == DEVIATES else []
            lines.setdefault((located(where, every), *rest, *alone), []).append(first)
    for (here, *rest), firsts in lines.items():
        yield [here, "; ".join(firsts), *rest[: len(HEADS[verdict]) - 2]]


def located(where: Iterable[tuple[str, str]], every: list[PublishedPlace]) -> str:
    here, all_ = dict.fromkeys(where), [place.names for place in every]
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*here, strict=True))
    if len(here) == len(all_):
        return "everywhere"
    if len(here) == sum(column in columns for _, column in all_):
        return ", ".join(columns)
    if len(here) == sum(row in rows for row, _ in all_):
        return ", ".join(rows)
    by_columns = grouped((", ".join(c for r, c in here if r == row), row) for row in rows)
    return "; ".join(f"{', '.join(names)} on {text}" for text, names in by_columns.items())


def value_words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
