"""Write the page and the CSV of each table; a comparison with controls begins with its answer."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from contrastbench.benchmarks.comparison.compare import Comparison, baseline_row, compare_rows
from contrastbench.benchmarks.comparison.controls import over_sets_of
from contrastbench.benchmarks.comparison.effects import OverSets
from contrastbench.benchmarks.comparison.formats import answer_lines
from contrastbench.benchmarks.comparison.markdown import caution_lines, effect_table
from contrastbench.benchmarks.tables import catalogue, formats
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve


class Compared(NamedTuple):
    """A comparison with controls, and the file of its figure."""

    resolved: Resolved
    base: str
    comparisons: list[Comparison]
    over: OverSets

    @property
    def figure(self) -> Path:
        """Return the path of its figure."""
        return self.resolved.results / f"{self.resolved.table.name}-effects.svg"


def write_tables(results: Path) -> Iterator[Path]:
    """Write every table, and those of YAML files in the results, as Markdown and CSV in there.

    A comparison with controls has a figure as well.

    Raises:
        UserError: a table's file is wrong, or the folder cannot be written.
    """
    for name in [*catalogue.table_names(), *map(str, sorted(results.glob("*.yaml")))]:
        resolved = resolve(load_table(name), None, results)
        lines, found = list(entries(resolved)), compared(resolved)
        if found:
            yield from draw_figure(found)
        page = formats.table_markdown(resolved, lines, list(opening(found)) if found else [])
        for suffix, text in (("md", page), ("csv", formats.table_csv(resolved, lines))):
            path = results / f"{resolved.table.name}.{suffix}"
            formats.write_file(path, text)
            yield path


def compared(resolved: Resolved) -> Compared | None:
    """Return the comparison of a table with controls; None: it has none, or too few records."""
    comparisons = compare_rows(resolved) if resolved.table.controls else []
    if not comparisons:
        return None
    base = baseline_row(resolved).name
    return Compared(resolved, base, comparisons, over_sets_of(resolved, base, comparisons))


def opening(found: Compared) -> Iterator[str]:
    """Yield the answer in a few lines, the figure where there is one, and the effects."""
    base, over = found.base, found.over
    answer = answer_lines(found.resolved, base, found.comparisons, over)
    yield "\n".join(f"- {escaped_cell(line)}" for line in answer)
    if found.figure.is_file():
        yield f"![The effect of each row against {escaped_cell(base)}]({found.figure.name})"
    yield "\n".join(markdown_table(effect_table(over, found.comparisons)))
    yield from map(escaped_cell, caution_lines(found.comparisons))


def draw_figure(found: Compared) -> Iterator[Path]:
    """Draw the effects anew where the figure shows others, if the library for it is installed.

    A figure of the same effects stays: each version of the library draws a little differently.
    """
    if not find_spec("matplotlib"):
        return
    from contrastbench.benchmarks.report.effects import effects_plot
    from contrastbench.benchmarks.report.plots import described

    drawing = effects_plot(found.base, found.over)
    old = found.figure.read_text(encoding="utf-8") if found.figure.is_file() else "<svg/>"
    if drawing and described(old) != drawing.words:
        formats.write_file(found.figure, drawing.picture())
        yield found.figure
