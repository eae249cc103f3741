"""Order methods over all sets, where each set counts once, as in the rank test."""

from dataclasses import dataclass
from math import isfinite
from statistics import fmean

from contrastbench.benchmarks.comparison.ranks import Ranks
from contrastbench.benchmarks.comparison.statistics import intervals, ranks_by_dataset
from contrastbench.benchmarks.tables.resolved import Resolved

# columns that an interval needs: of two, a bootstrap draws either one alone every second time
MIN_COLUMNS = 6


@dataclass(frozen=True)
class Standing:
    """The rank and the gain of one method over all columns."""

    row: str
    rank: float  # mean over the columns; 1 is best
    interval: tuple[float, float] | None  # 95 %, by bootstrap over the columns; None: these are few
    by_domain: dict[str, float]
    # percent points above the untrained encoder, over the columns; None where it has failed
    gain: float | None


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
