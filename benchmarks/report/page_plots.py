"""The plots that templates ask for by name."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from contrastbench.benchmarks.report.contents import Shown
from contrastbench.benchmarks.report.cost_plot import cost_plot
from contrastbench.benchmarks.report.differences import differences_plot
from contrastbench.benchmarks.report.effects import effects_plot
from contrastbench.benchmarks.report.plots import Drawing
from contrastbench.benchmarks.report.sensitivity import Sensitivity, sensitivity_plot


@dataclass
class PagePlots:
    """Plots as markup for pages, each saved for papers too where a folder is given."""

    folder: Path | None
    saved: Counter[str] = field(default_factory=Counter)  # two data of one set share a name

    @property
    def functions(self) -> Mapping[str, Callable[..., Markup]]:
        """Return the functions that templates call, each under its name there."""
        mine = (self.sensitivity_plot, self.cost_plot, self.effects_plot, self.differences_plot)
        return {one.__name__: one for one in mine}

    def sensitivity_plot(self, what: Sensitivity) -> Markup:
        """Return the score against one setting."""
        return self.shown(what.title, sensitivity_plot(what))

    def cost_plot(self, one: Shown) -> Markup:
        """Return the scores of a table's methods against their times."""
        drawing = cost_plot([cost[:3] for cost in one.costs], one.table.metric or "score")
        return self.shown(f"{one.name} costs", drawing)

    def effects_plot(self, one: Shown) -> Markup:
        """Return the effects of a table's methods over data sets."""
        return self.shown(
            f"{one.name} effects", effects_plot(one.verdicts) if one.verdicts else None
        )

    def differences_plot(self, one: Shown) -> Markup:
        """Return the differences of a table's methods on each data set."""
        drawing = differences_plot(one.verdicts) if one.verdicts else None
        return self.shown(f"{one.name} differences", drawing)

    def shown(self, name: str, drawing: Drawing | None) -> Markup:
        """Return a plot as markup, and save it where there is a folder."""
        if drawing is None:
            return Markup()
        if self.folder:
            number = self.saved[name]
            drawing.save(self.folder, f"{name}-{number}" if number else name)
            self.saved[name] += 1
        return Markup(drawing.svg())
