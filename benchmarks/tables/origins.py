"""Tell which records of a table came with contrastbench, and whose loss was edited since."""

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.experiment import records_of
from contrastbench.benchmarks.records.reading import SHIPPED
from contrastbench.benchmarks.records.store import FINAL_STATUSES
from contrastbench.benchmarks.tables.resolved import Line, Resolved


def shipped(resolved: Resolved) -> tuple[int, int]:
    """Return how many records came with contrastbench, and how many there are.

    None came where the folder is the shipped one itself.
    """
    if (resolved.results / "runs").resolve() == (SHIPPED / "runs").resolve():
        return 0, 0
    used = list({work.key: work for cell in resolved.cells for work in cell.experiments}.values())
    here = records_of(used, resolved.results)
    theirs = {(one["key"], one["seed"]): one for one in records_of(used, SHIPPED)}
    return sum(theirs.get((one["key"], one["seed"])) == one for one in here), len(here)


def edited(resolved: Resolved) -> list[str]:
    """Return the rows whose loss was edited after all their records were made."""
    return [line.name for line in resolved.lines if was_edited(resolved, line)]


def was_edited(resolved: Resolved, line: Line) -> bool:
    """Return whether a row has no records but those of another text of its loss."""
    if any(cell.has_run for cell in line.cells.values()):
        return False
    own = [one for cell in line.cells.values() if (one := cell.place.work).loss.code]
    return any(
        record["loss_code"] != one.loss.code and record["status"] in FINAL_STATUSES
        for one in own
        for _, record in reading.list_records(one.folder(resolved.results))
    )


def where_from(name: str, resolved: Resolved) -> str:
    """Return a line on how to get records where a table has none; else nothing."""
    if not resolved.cells or any(cell.has_run for cell in resolved.cells):
        return ""
    return (
        f"no records of {name} in {resolved.results}: bench sweep {name} makes them"
        + ", bench merge --shipped adds those that come with contrastbench" * ships(resolved)
    )


def ships(resolved: Resolved) -> bool:
    """Return whether records of the table come with contrastbench."""
    return any(records_of(cell.experiments, SHIPPED) for cell in resolved.cells)
