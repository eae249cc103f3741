"""The score against one setting of a loss or of its training, all others held."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records.store import Fields, Record, canonical
from contrastbench.benchmarks.report.groups import Group
from contrastbench.benchmarks.report.plots import COLORS, LINE_STYLES, MARKERS, RC, Drawing


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


def sensitivity_plot(what: Sensitivity) -> Drawing:
    """Means with their standard deviations; at most as many lines as there are colours."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(3.6, 2.4))
        axes = figure.add_axes((0.16, 0.19, 0.82, 0.77))
        for line, color, marker, style in zip(
            what.lines, COLORS, MARKERS, LINE_STYLES, strict=False
        ):
            axes.errorbar(
                line.x,
                line.mean,
                line.std,
                color=color,
                marker=marker,
                linestyle=style,
                markersize=4,
                linewidth=1.2,
                capsize=2,
                elinewidth=0.7,
            )
        every = sorted({x for line in what.lines for x in line.x})
        if every[0] > 0 and every[-1] / every[0] > 20:
            axes.set_xscale("log")
        if len(every) <= 8:
            axes.set_xticks(every, [f"{x:g}" for x in every])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(what.setting, parse_math=False)
        axes.set_ylabel(what.metric, parse_math=False)
        return Drawing(figure, plot_text(what))


def plot_text(what: Sensitivity) -> str:
    """The plot in words."""
    line = what.lines[0]
    points = ", ".join(
        f"{mean:.2f} at {x:g} (n = {n})"
        for x, mean, n in zip(line.x, line.mean, line.n, strict=True)
    )
    return f"{what.title}. {'First line: ' if len(what.lines) > 1 else ''}{points}."
