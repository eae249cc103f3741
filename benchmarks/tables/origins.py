"""Say which records of a table came with contrastbench, and which did not."""

from collections.abc import Collection, Mapping
from itertools import pairwise

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.experiment import records_of
from contrastbench.benchmarks.records.merge import SHIPPED
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell

SeedsByPlace = dict[str, dict[str, tuple[int, ...]]]  # by row and column

SHIPPED_ORIGIN, OWN_ORIGIN = "came with contrastbench", "were run or merged by you"


def origin_line(resolved: Resolved) -> str:
    """Return a line on where the records come from; nothing where none or all are shipped.

    The part with the shorter line is named, and the other one is all others.
    """
    if (resolved.results / "runs").resolve() == (SHIPPED / "runs").resolve():
        return ""
    theirs, yours = split_seeds(resolved)
    if not (theirs and yours):
        return ""
    filled = {
        line.name: {column for column, cell in line.cells.items() if cell.records}
        for line in resolved.lines
    }
    parts = (
        (seeds_text(theirs, filled), SHIPPED_ORIGIN, OWN_ORIGIN),
        (seeds_text(yours, filled), OWN_ORIGIN, SHIPPED_ORIGIN),
    )
    named, origin, other = min(parts, key=lambda part: len(part[0]))
    return f"Records that {origin}: {named}. All others {other}."


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
    cells = [cell for line in resolved.lines for cell in line.cells.values()]
    if not cells or any(cell.records or cell.failed for cell in cells):
        return ""
    shipped = any(records_of(cell.experiments, SHIPPED) for cell in cells)
    return (
        f"no records of {name} in {resolved.results}: bench sweep {name} makes them"
        + ", bench merge --shipped adds those that come with contrastbench" * shipped
    )


def split_seeds(resolved: Resolved) -> tuple[SeedsByPlace, SeedsByPlace]:
    """Return the seeds that are shipped, and those that are not."""
    theirs: SeedsByPlace = {}
    yours: SeedsByPlace = {}
    for line in resolved.lines:
        for column, cell in line.cells.items():
            shipped = shipped_seeds(cell, resolved)
            for part, some in ((theirs, shipped), (yours, cell.records.keys() - shipped)):
                if some:
                    part.setdefault(line.name, {})[column] = tuple(sorted(some))
    return theirs, yours


def shipped_seeds(cell: ResolvedCell, resolved: Resolved) -> set[int]:
    """Return the seeds of a place all of whose records are shipped ones."""
    shipped = records_of(cell.experiments, SHIPPED)
    known = {(one["key"], one["seed"]): one for one in shipped}
    if not known:
        return set()
    own = {
        record["seed"]
        for record in records_of(cell.experiments, resolved.results)
        if known.get((record["key"], record["seed"])) != record
    }
    return cell.records.keys() - own


def seeds_text(part: SeedsByPlace, filled: Mapping[str, Collection[str]]) -> str:
    """Return the seeds of rows, with the columns where these are not all that a row fills.

    >>> part = {"infonce": {"A": (0, 1), "B": (0, 1)}, "adnce": {"A": (0,)}}
    >>> seeds_text(part, {"infonce": {"A", "B"}, "adnce": {"A", "B"}})
    'seeds 0-1 of infonce; seed 0 of adnce on A'
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for row, found in part.items():
        for seeds in dict.fromkeys(found.values()):
            some = [column for column in found if found[column] == seeds]
            where = f" on {', '.join(some)}" * (len(some) < len(filled[row]))
            alike.setdefault((seed_ranges(seeds), where), []).append(row)
    return "; ".join(f"{seeds} of {', '.join(rows)}{on}" for (seeds, on), rows in alike.items())


def seed_ranges(seeds: tuple[int, ...]) -> str:
    """Return seeds as people write them.

    >>> seed_ranges((0, 1, 2, 7)), seed_ranges((3,))
    ('seeds 0-2,7', 'seed 3')
    """
    starts = [seeds[0], *(b for a, b in pairwise(seeds) if b > a + 1)]
    ends = [*(a for a, b in pairwise(seeds) if b > a + 1), seeds[-1]]
    spans = [f"{a}-{b}" if b > a else f"{a}" for a, b in zip(starts, ends, strict=True)]
    return f"seed{'s' * (len(seeds) > 1)} {','.join(spans)}"
