"""Print the list of tables of `bench list`: without records, their files alone are read."""

from collections.abc import Iterator
from pathlib import Path

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
        about = catalogue.listed(name)
        counts = f"{about.values:3} values, {about.runnable:2} runnable" if about.values else ""
        done = done_in(name, records) if records and about.values else ""
        yield f"{name:20} {counts + done:{42 if records else 24}}  {about.source}"
    if not records:
        tell(f"no records in {DEFAULT}: bench merge --shipped adds those of contrastbench")


def done_in(name: str, results: Path) -> str:
    """Return how many published values of a table are done, with the hours of their records."""
    from contrastbench.benchmarks.tables.load import load_table
    from contrastbench.benchmarks.tables.published_places import coverage, published_places
    from contrastbench.benchmarks.tables.resolved import resolve

    resolved = resolve(load_table(name), None, results)
    places = [place.cell.records.values() for place in published_places(resolved)]
    spent = {(r["key"], r["seed"]): r.get("seconds", 0) for some in places for r in some}
    took = f" in {sum(spent.values()) / 3600:.1f} h" if spent else ""
    return f", {coverage(resolved).done:2} done{took}"
