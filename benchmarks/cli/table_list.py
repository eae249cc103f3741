"""Print the list of tables of `bench list`: without records, their files alone are read."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contrastbench.benchmarks.tables import catalogue
from contrastbench.errors import tell

DEFAULT = Path("results")


def table_lines(results: Path | None = None) -> Iterator[str]:
    """Yield each table's name, published values, how many can be run and are done, its source.

    Args:
        results: a folder of records; by default `results`, if it has some.
    """
    records = results or (DEFAULT if (DEFAULT / "runs").is_dir() else None)
    if results:
        from contrastbench.benchmarks.records.reading import filled_folders

        filled_folders(results)
    for name in catalogue.table_names():
        about = listed(name)
        counts = f"{about.values:3} values, {about.runnable:2} runnable" if about.values else ""
        done = done_in(name, about, records) if records and about.values else ""
        yield f"{name:20} {counts + done:{42 if records else 24}}  {about.source}"
    if not records:
        tell(f"no records in {DEFAULT}: bench merge --shipped adds those of contrastbench")


class Listed(NamedTuple):
    """What the file of a table says at a glance."""

    values: int  # that are published
    runnable: int  # of these
    source: str
    data: list[tuple[str, str]]  # domains and data sets of these


def listed(name: str) -> Listed:
    """Return what the file of one of our tables says, unchecked: a list reads all of them."""
    file = catalogue.read(catalogue.table_files()[name]).value
    columns = file.get("columns", {})
    printed = [(r, c) for r in file.get("rows", ()) for c in r.get("paper", ()) if c in columns]
    there = [columns[c] for row, c in printed if "loss" in row and "dataset" in columns[c]]
    data = [(column.get("domain") or file["domain"], column["dataset"]) for column in there]
    return Listed(len(printed), len(there), file["source"], data)


def done_in(name: str, about: Listed, results: Path) -> str:
    from contrastbench.benchmarks.records.store import file_name

    folders = {results.joinpath("runs", *map(file_name, one)) for one in about.data}
    if not any(folder.is_dir() for folder in folders):
        return ",  0 done"

    from contrastbench.benchmarks.tables.audit import coverage, published_places
    from contrastbench.benchmarks.tables.load import load_table
    from contrastbench.benchmarks.tables.resolved import resolve

    resolved = resolve(load_table(name), None, results)
    places = [place.cell.records.values() for place in published_places(resolved)]
    spent = {(r["key"], r["seed"]): r.get("seconds", 0) for some in places for r in some}
    took = f" in {sum(spent.values()) / 3600:.1f} h" if spent else ""
    return f", {coverage(resolved).done:2} done{took}"
