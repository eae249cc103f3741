"""Write the page, the figure and the CSV of each table; a page begins with its answer."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.report.comparison import effect_table
from contrastbench.benchmarks.report.contents import TableView, view_of
from contrastbench.benchmarks.report.tables import table_csv, table_markdown
from contrastbench.benchmarks.report.words import drawn
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.searches import Finalists
from contrastbench.domains.reading import doubles
from contrastbench.errors import UserError


def write_tables(results: Path) -> Iterator[Path]:
    """Write every table, and those of YAML files in the results, as Markdown and CSV in there.

    A table with results has a figure as well. Drafts have no page.
    """
    tables = [*catalogue.table_names(), *map(str, sorted(results.glob("*.yaml")))]
    if double := next(iter(doubles(Path(name.casefold()).stem for name in tables)), ""):
        raise UserError(f"two tables of {results} would be {double}.md: rename that YAML file")
    for name in tables:
        resolved = resolve(load_table(name), None, results)
        if resolved.table.draft:
            continue
        for ending, text in texts(view_of(resolved)).items():
            path = results / f"{resolved.table.name}{ending}"
            write_file(path, text)
            yield path


def write_file(path: Path, text: str) -> None:
    """Write the file, whole or not at all: where the disk is full, the old one stays."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}): make room or name another --results"
        ) from None


def texts(shown: TableView) -> dict[str, str]:
    effects = effect_table(shown.verdicts) if shown.verdicts else []
    pages = table_markdown(shown.resolved, shown.entries, page=shown, effects=effects)
    files_of = {".md": pages, ".csv": table_csv(shown.resolved, shown.entries)}
    if shown.figure:
        files_of[".svg"] = drawn(shown.figure)
    if shown.table.is_suite_of_sets:
        files_of["-cells.csv"] = files.comma_separated(list(cell_keys(shown.resolved)), "{}")
    return files_of


def cell_keys(resolved: Resolved) -> Iterator[dict[str, str | int]]:
    """Yield the key of each setting that a suite's rows choose among, by its point.

    With them `examples/recompute_standard.py` computes the suite anew from `cb.records`.
    """
    for line in resolved.lines:
        for column, cell in line.cells.items():
            place, data = cell.place, next(iter(cell.ok), "")
            search, settings = place.search, cell.choice.settings
            settings = search.space.settings if isinstance(search, Finalists) else settings
            named = {"method": line.name, "control": line.control, "column": column}
            for point, setting in enumerate(settings):
                work = place.experiment(setting)
                runs = work.finished_cells(resolved.results).items()
                if key := next((run["key"] for (of, _), run in runs if of == data), ""):
                    numbers = {"shift": place.shift, "point": point}
                    yield {**named, "domain": work.domain, **numbers, "key": str(key)}
