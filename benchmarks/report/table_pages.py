"""Write the page and the CSV of each table; a comparison with controls begins with its answer."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from contrastbench.benchmarks.comparison.verdicts import Verdicts, compare
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.report.comparison import effect_table
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.tables import catalogue, formats
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve


def write_tables(results: Path) -> Iterator[Path]:
    """Write every table, and those of YAML files in the results, as Markdown and CSV in there.

    A comparison with controls has a figure as well. Drafts have no page.

    Raises:
        UserError: a table's file is wrong, or the folder cannot be written.
    """
    for name in [*catalogue.table_names(), *map(str, sorted(results.glob("*.yaml")))]:
        resolved = resolve(load_table(name), None, results)
        if resolved.table.draft:
            continue
        found = compare(resolved) if resolved.table.controls else None
        figure = results / f"{resolved.table.name}-effects.svg"
        if found and found.places:
            yield from draw_figure(found, figure)
        first = list(opening(found, figure)) if found and found.places else []
        lines = list(entries(resolved))
        page = formats.table_markdown(resolved, lines, first)
        texts = {".md": page, ".csv": formats.table_csv(resolved, lines)}
        if resolved.table.is_suite and resolved.table.test == "seeds":
            texts["-cells.csv"] = files.comma_separated(list(cell_keys(resolved)), "{}")
        for ending, text in texts.items():
            path = results / f"{resolved.table.name}{ending}"
            formats.write_file(path, text)
            yield path


def cell_keys(resolved: Resolved) -> Iterator[dict[str, str | int]]:
    """Yield the keys of the records that each number of a suite is made of, or chosen from.

    With them `examples/recompute_standard.py` computes the suite anew without this package.
    """
    for line in (line for line in resolved.lines if not line.repeats):
        for column, cell in line.cells.items():
            keys = [cell.place.experiment(one) for one in cell.choice.settings]
            for work in keys if cell.ok else ():
                by_seed = work.ok_by_data(resolved.results, resolved.table.unshown_seeds)
                record = next(iter(by_seed[next(iter(cell.ok))].values()))
                named = {"method": line.name, "control": line.control, "column": column}
                shift = cell.place.shift
                yield {**named, "best": cell.choice.nested, "shift": shift, "key": record["key"]}


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
