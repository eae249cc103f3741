"""Rank the rows of a table over its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import fmean

from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    Ranking,
    intervals,
    rank,
    ranks_by_dataset,
)
from contrastbench.benchmarks.tables.entries import Entry
from contrastbench.benchmarks.tables.resolved import Line, Resolved
from contrastbench.benchmarks.tables.table import Table

# columns that an interval needs: of two, a bootstrap draws either one alone every second time
MIN_COLUMNS = 6
MIN_METHODS = 3  # methods that have ranks


@dataclass(frozen=True)
class Ranks:
    """Runnable rows over the columns that all of them fill, or why there are none."""

    rows: list[str]
    columns: list[str]
    left_out: list[str]  # columns where a row is missing
    unranked: list[str]  # rows that fill few of the columns
    ranking: Ranking | None
    scores: list[list[float]]  # (columns, rows); -inf: the row has failed there
    why: str = ""
    failed: tuple[str, ...] = ()  # columns where a row has


@dataclass(frozen=True)
class Standing:
    """The rank and the gain of one method over all columns."""

    row: str
    rank: float  # mean over the columns; 1 is best
    interval: tuple[float, float] | None  # 95 %, by bootstrap over the columns; None: these are few
    by_domain: dict[str, float]
    # percent points above the untrained encoder, over the columns; None where it has failed
    gain: float | None


@dataclass(frozen=True)
class Ranked:
    """The ranks of a table's rows, and those where no method has failed, if some has elsewhere."""

    ranks: Ranks
    standings: Sequence[Standing]
    without_failures: Ranks | None = None
    rest: Sequence[Standing] = ()


def ranked(resolved: Resolved, lines: Sequence[Sequence[Entry]], alpha: float = ALPHA) -> Ranked:
    """Return the ranks of a table's rows over its columns."""
    found = ranks(resolved.table, lines, alpha)
    if not (found.failed and found.ranking):
        return Ranked(found, standings(resolved, found))
    rest = ranks(resolved.table, lines, alpha, failures=False)
    return Ranked(found, standings(resolved, found), rest, standings(resolved, rest))


def ranks(
    table: Table, lines: Sequence[Sequence[Entry]], alpha: float = ALPHA, failures: bool = True
) -> Ranks:
    """Our means ranked over the columns that every ranked row fills.

    A row of other data is no method of its own. A row that fills fewer than half of the columns,
    as a loss that joins in one domain, has no rank: all others would lose the other columns.

    Args:
        table: what the lines are of.
        lines: its entries.
        alpha: of the critical difference.
        failures: whether a method that failed on a set, or diverged with a seed, has the last rank
            there, which it shares with others that did; or the set is left out.
    """
    methods, unranked = split_methods([line[: len(table.columns)] for line in lines])
    rows = [method_name(line) for line in methods]
    columns, left_out, failed = list[str](), list[str](), tuple[str, ...]()
    scores = []
    for places in zip(*methods, strict=True):
        name, lost = places[0].column, any(map(has_diverged, places))
        if all(has_result(place) for place in places) and (failures or not lost):
            columns.append(name)
            scores.append([rank_score(place) for place in places])
            failed += (name,) * lost
        elif any(map(has_result, places)):
            left_out.append(name)
    found = rows, columns, left_out, [method_name(line) for line in unranked]
    try:
        return Ranks(*found, rank(scores, alpha), scores, failed=failed)
    except ValueError:
        got = f"got {len(rows)} on {len(columns)}"
        why = f"ranks need {MIN_METHODS} methods on 2 data sets in common, {got}"
        return Ranks(*found, None, scores, why, failed)


def split_methods(
    lines: Sequence[Sequence[Entry]],
) -> tuple[list[Sequence[Entry]], list[Sequence[Entry]]]:
    """Methods that fill half of the columns that are filled, and others; all if these are few."""
    methods = [line for line in lines if is_ranked(line[0].line) and any(map(has_result, line))]
    columns = sum(any(map(has_result, column)) for column in zip(*methods, strict=True))
    most = [line for line in methods if 2 * sum(map(has_result, line)) >= columns]
    if len(most) < MIN_METHODS:
        return methods, []
    return most, [line for line in methods if line not in most]


def is_ranked(line: Line) -> bool:
    """Return whether a row is a method: no control, no repetition, no copy wherever it has run."""
    run = [cell for cell in line.cells.values() if cell.ok or cell.failed]
    is_copy = bool(run) and all(cell.same_as for cell in run)
    return not (line.repeats or is_copy or line.control)


def has_diverged(place: Entry) -> bool:
    """Return whether no seed of the place has a number, or some seeds have diverged."""
    return place.failed or bool(place.cell and place.cell.diverged)


def rank_score(place: Entry) -> float:
    """Return what a place is ranked by: the mean; a method that has diverged there is last."""
    return place.ours.mean if place.ours and not has_diverged(place) else -inf


def has_result(place: Entry) -> bool:
    """Return whether the place has a result of ours, or a failure."""
    return bool(place.ours or place.failed)


def method_name(line: Sequence[Entry]) -> str:
    """Return the name of a line's method."""
    return line[0].line.name


def standings(resolved: Resolved, placed: Ranks) -> list[Standing]:
    """The methods over the columns that all of them fill, best first; none without ranks."""
    if placed.ranking is None:
        return []
    domains: dict[str, list[int]] = {}
    for i, column in enumerate(placed.columns):
        domains.setdefault(resolved.table.domain_of(column), []).append(i)
    ranks = ranks_by_dataset(placed.scores)
    spans = intervals([ranks]) if len(ranks) >= MIN_COLUMNS else [None] * len(placed.rows)
    untrained = untrained_row(resolved, placed)
    found = []
    for j, row in enumerate(placed.rows):
        means = {name: fmean(ranks[i][j] for i in columns) for name, columns in domains.items()}
        gains = [row[j] - row[untrained] for row in placed.scores if untrained is not None]
        gain = fmean(gains) if gains and all(map(isfinite, gains)) else None
        found.append(Standing(row, fmean(rank[j] for rank in ranks), spans[j], means, gain))
    return sorted(found, key=lambda one: one.rank)


def untrained_row(resolved: Resolved, placed: Ranks) -> int | None:
    """Return the place of the untrained encoder among the ranked rows, if it is there."""
    lines = {line.name: line for line in resolved.lines}
    for j, name in enumerate(placed.rows):
        work = lines[name].cells[placed.columns[0]].work
        if not work.trained and work.full_recipe.trainable:
            return j
    return None
