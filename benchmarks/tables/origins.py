"""Tell why a table lacks records: a smoke test, an edited loss, or nothing that has run yet."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.records.store import FINAL_STATUSES
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.errors import UserError


def smoke_tests(resolved: Resolved) -> Iterator[str]:
    """Yield a line on the results of a smoke test, where a table has no others."""
    cells = () if resolved.has_run else resolved.cells
    small = {}
    for place, one in ((c.place, one) for c in cells for one in (c.place.setting, *c.choice.tried)):
        with suppress(UserError):  # a network that is never small has no smoke test
            work = place.smoke_test(one)
            small[work.key] = work
    if count := sum(1 for work in small.values() for _ in work.finished(resolved.results)):
        yield f"records of --tiny left out, as a smoke test fills no table: {count}"


def where_from(name: str, resolved: Resolved) -> Iterator[str]:
    """Yield a line on how to get records, where a table has none."""
    if resolved.cells and not resolved.has_run:
        yield (
            f"no records of {name} in {resolved.results}: bench sweep {name} makes them"
            + ", bench merge --shipped adds those that come with contrastbench" * ships(resolved)
        )


def lacking(cells: Iterable[ResolvedCell]) -> list[str]:
    """Return for each row where it has no result yet, and why."""
    reasons = ((cell, cell.choice.why or "not run" * (not cell.has_run)) for cell in cells)
    columns = grouped(((cell.row.name, why), cell.column) for cell, why in reasons if why)
    return [f"{row} on {', '.join(some)}: {why}" for (row, why), some in columns.items()]


def ships(resolved: Resolved) -> bool:
    works = (work for cell in resolved.cells for work in cell.experiments)
    return any(work.records(SHIPPED) for work in works)


def edited(resolved: Resolved) -> list[str]:
    """Return the rows whose loss was edited after all their records were made."""
    return [line.name for line in resolved.lines if was_edited(resolved, line)]


def was_edited(resolved: Resolved, line: Line) -> bool:
    """Return whether a row has no records but those of another text of its loss."""
    if any(cell.has_run for cell in line.cells.values()):
        return False
    own = [work for cell in line.cells.values() if (work := cell.place.work).loss.code]
    return any(
        record["loss_code"] != work.loss.code and record["status"] in FINAL_STATUSES
        for work in own
        for _, record in reading.list_records(work.folder(resolved.results))
    )
