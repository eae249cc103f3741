"""Write the page and the CSV of each table; a comparison with controls begins with its answer."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from contrastbench.benchmarks.comparison.verdicts import Verdicts, compare
from contrastbench.benchmarks.report.comparison import effect_table
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables import catalogue, formats
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve


def write_tables(results: Path) -> Iterator[Path]:
    """Write every table, and those of YAML files in the results, as Markdown and CSV in there.

    A comparison with controls has a figure as well.

    Raises:
        UserError: a table's file is wrong, or the folder cannot be written.
    """
    for name in [*catalogue.table_names(), *map(str, sorted(results.glob("*.yaml")))]:
        resolved = resolve(load_table(name), None, results)
        found = compare(resolved) if resolved.table.controls else None
        figure = results / f"{resolved.table.name}-effects.svg"
        if found and found.places:
            yield from draw_figure(found, figure)
        first = list(opening(found, figure)) if found and found.places else []
        lines = list(entries(resolved))
        page = formats.table_markdown(resolved, lines, first)
        for suffix, text in (("md", page), ("csv", formats.table_csv(resolved, lines))):
            path = results / f"{resolved.table.name}.{suffix}"
            formats.write_file(path, text)
            yield path


def opening(found: Verdicts, figure: Path) -> Iterator[str]:
    """Yield the answer in a few lines, the figure where there is one, and the effects."""
    yield "\n".join(f"- {escaped_cell(line)}" for line in said(found))
    if figure.is_file():
        yield f"![The effect of each row against {escaped_cell(found.base)}]({figure.name})"
    yield "\n".join(markdown_table(effect_table(found)))
    yield from map(escaped_cell, said(found, "caution"))


def draw_figure(found: Verdicts, path: Path) -> Iterator[Path]:
    """Draw the effects anew where the figure shows others, if the library for it is installed.

    A figure of the same effects stays: each version of the library draws a little differently.
    """
    if not find_spec("matplotlib"):
        return
    from contrastbench.benchmarks.report.effects import effects_plot
    from contrastbench.benchmarks.report.plots import described

    drawing = effects_plot(found)
    old = path.read_text(encoding="utf-8") if path.is_file() else "<svg/>"
    if drawing and described(old) != drawing.words:
        formats.write_file(path, drawing.picture())
        yield path
