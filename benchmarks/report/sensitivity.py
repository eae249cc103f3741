"""The score against one setting of a loss or of its training, all others held."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records.store import Fields, Record, canonical
from contrastbench.benchmarks.report.figures import Chart
from contrastbench.benchmarks.report.groups import Group


@dataclass(frozen=True)
class PlotLine:
    """A metric against one setting, all others held."""

    held: dict[str, Any]
    x: list[float]
    mean: list[float]
    std: list[float]
    n: list[int]


@dataclass(frozen=True)
class Sensitivity:
    """Lines of one setting for a loss on a dataset."""

    domain: str
    dataset: str
    loss: str
    setting: str
    metric: str
    lines: list[PlotLine]
    tuning: bool = False  # of seeds that choose parameters, which are no results

    @property
    def title(self) -> str:
        """Return the title of the plot."""
        seeds = ", tuning seeds" if self.tuning else ""
        return f"{self.loss} on {self.dataset}: {self.metric} against {self.setting}{seeds}"

    @property
    def differing(self) -> list[str]:
        """Held settings in which the lines differ."""
        names = sorted({name for line in self.lines for name in line.held})
        return [
            name
            for name in names
            if len({canonical(line.held.get(name)) for line in self.lines}) > 1
        ]

    def label(self, line: PlotLine) -> str:
        """The line's values where lines differ."""
        return ", ".join(f"{name}={line.held.get(name)}" for name in self.differing)

    @property
    def chart(self) -> Chart:
        """Return the chart of the longest lines."""
        lines = {
            f"{self.label(line) or self.metric}, n = {min(line.n)}": [
                *zip(line.x, line.mean, strict=True)
            ]
            for line in self.lines[:MAX_LINES]
        }
        seeds = ", tuning seeds" * self.tuning
        return Chart(f"{self.dataset}: {self.metric}{seeds}", self.setting, lines)


MAX_LINES = 6  # of a chart, which has as many colours
SHARED_FIELDS = ("domain", "dataset", "loss", "loss_code", "data_hash")  # of what one plot shows


def sensitivities(groups: Iterable[Group]) -> Iterator[Sensitivity]:
    """Every numeric parameter or recipe value that some records differ in alone.

    Seeds that choose parameters have plots of their own.
    """
    families = defaultdict(list)
    for group in groups:
        first: Fields = group.first
        place = [first[key] for key in SHARED_FIELDS]
        for tuning in (False, True):
            if group.scores(tuning):
                families[(*place, tuning)].append(group)
    for (domain, dataset, loss, _, _, tuning), members in families.items():
        for name in varying(members):
            lines = list(lines_of(members, name, tuning))
            if lines:
                main = next(
                    record["main"] for record in members[0].records if record["status"] == "ok"
                )
                yield Sensitivity(domain, dataset, loss, name, main, lines, tuning)


def record_settings(record: Record) -> dict[str, Any]:
    """Parameters of the loss and values of the recipe."""
    return {
        **{f"recipe.{name}": value for name, value in record["recipe"].items()},
        **record["params"],
    }


def varying(members: Sequence[Group]) -> list[str]:
    """Numeric settings that take more than one value."""
    values = defaultdict(set)
    for group in members:
        for name, value in record_settings(group.first).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name].add(value)
    return sorted(name for name, found in values.items() if len(found) > 1)


def lines_of(members: Sequence[Group], name: str, tuning: bool = False) -> Iterator[PlotLine]:
    """Groups that differ in this setting alone, the longest line first."""
    alike: dict[str, list[Group]] = defaultdict(list)
    for group in members:
        held = {key: value for key, value in record_settings(group.first).items() if key != name}
        if isinstance(record_settings(group.first).get(name), int | float):
            alike[canonical([held, group.first["protocol"]])].append(group)
    for _, found in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        points = sorted(
            (record_settings(group.first)[name], group.scores(tuning)) for group in found
        )
        if len({x for x, _ in points}) > 1:
            spread = [mean_std(scores) for _, scores in points]
            held = {
                key: value for key, value in record_settings(found[0].first).items() if key != name
            }
            yield PlotLine(
                held,
                [x for x, _ in points],
                [m for m, _ in spread],
                [s or 0.0 for _, s in spread],
                [len(y) for _, y in points],
            )
