"""Say which records of a table came with contrastbench, and which did not."""

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.experiment import records_of
from contrastbench.benchmarks.records.reading import SHIPPED
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell


def origin_line(resolved: Resolved) -> str:
    """Return how many records came with contrastbench; nothing where none or all are shipped."""
    if (resolved.results / "runs").resolve() == (SHIPPED / "runs").resolve():
        return ""
    by_key = {work.key: work for cell in cells_of(resolved) for work in cell.experiments}
    used = list(by_key.values())
    here = records_of(used, resolved.results)
    shipped = {(one["key"], one["seed"]): one for one in records_of(used, SHIPPED)}
    theirs = sum(shipped.get((one["key"], one["seed"])) == one for one in here)
    if theirs in (0, len(here)):
        return ""
    others = "all others were run or merged by you"
    return f"{theirs} of {len(here)} records came with contrastbench, {others}."


def cells_of(resolved: Resolved) -> list[ResolvedCell]:
    """Return the places of a table that can be run here."""
    return [cell for line in resolved.lines for cell in line.cells.values()]


def edited_line(resolved: Resolved) -> str:
    """Return a line on rows whose loss was edited after all their records were made, or nothing."""
    edited = [line.name for line in resolved.lines if was_edited(resolved, line)]
    found = "edited after the records were made, which do not count. bench sweep runs the cells."
    return f"{', '.join(edited)}: {found}" if edited else ""


def was_edited(resolved: Resolved, line: Line) -> bool:
    """Return whether a row has no records but those of another text of its loss."""
    if any(cell.records or cell.failed for cell in line.cells.values()):
        return False
    own = [one for cell in line.cells.values() if (one := cell.place.work).loss.code]
    return any(
        record["loss_code"] != one.loss.code
        for one in own
        for record, _ in reading.finished_cells(one.folder(resolved.results))
    )


def where_from(name: str, resolved: Resolved) -> str:
    """Return a line on how to get records where a table has none; else nothing."""
    cells = cells_of(resolved)
    if not cells or any(cell.records or cell.failed for cell in cells):
        return ""
    shipped = any(records_of(cell.experiments, SHIPPED) for cell in cells)
    return (
        f"no records of {name} in {resolved.results}: bench sweep {name} makes them"
        + ", bench merge --shipped adds those that come with contrastbench" * shipped
    )
