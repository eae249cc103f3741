"""Methods against the baseline over data sets, and what the runs of a table could have seen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from statistics import fmean, median

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    PValue,
    corrected_t,
    detectable,
    half_width,
    holm,
    mean_std,
    wilcoxon,
)

SETS = 5  # fewer are no sample of data sets


@dataclass(frozen=True)
class OverSets:
    """One method's differences, a mean over seeds for each data set: sets are the sample.

    Each set counts once, however many seeds, folds or columns it has (Demšar 2006).
    """

    row: str
    differences: tuple[float, ...]
    failed: int  # sets on which it has no number, so no difference either
    test: PValue
    half_width: float | None  # of the t-test's 95 % interval around the mean
    detectable: float | None  # the smallest true mean that so many sets would have shown
    holm: float | None = None  # over the methods
    verdict: str = "untested"

    @property
    def mean(self) -> float:
        """In percent points."""
        return fmean(self.differences)

    @property
    def won(self) -> int:
        """Sets on which its mean is above the baseline's."""
        return sum(difference > 0 for difference in self.differences)


def over_sets(
    comparisons: Sequence[Comparison], test: str = "t", alpha: float = ALPHA
) -> list[OverSets]:
    """Each method with a difference on five data sets or more, the largest mean first."""
    by_row: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_row.setdefault(one.row, []).append(one)
    found = [
        over_sets_of(row, mine, test, alpha)
        for row, mine in by_row.items()
        if len(differences_by_set(mine)) >= SETS
    ]
    return sorted(decide(found, alpha), key=lambda one: -one.mean)


def over_sets_of(row: str, mine: Sequence[Comparison], test: str, alpha: float) -> OverSets:
    """One method's."""
    d = list(differences_by_set(mine).values())
    _, std = mean_std(d)
    failed = len({set_of(one) for one in mine if one.verdict == "failed"})
    p = wilcoxon(d) if test == "wilcoxon" else corrected_t(d, ratio=0.0)
    width = half_width(std, len(d), 0.0, alpha) if std else None
    return OverSets(row, tuple(d), failed, p, width, detectable(std or 0.0, len(d), 0.0, alpha))


def set_of(one: Comparison) -> tuple[str, str]:
    """What is trained on: columns of one set (two probes of it) are no two sets."""
    return one.domain, one.dataset


def differences_by_set(mine: Iterable[Comparison]) -> dict[tuple[str, str], float]:
    """The mean over the columns of each set that have a difference."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in mine:
        if one.difference is not None:
            found.setdefault(set_of(one), []).append(one.difference)
    return {name: fmean(values) for name, values in found.items()}


def decide(found: Sequence[OverSets], alpha: float) -> Iterator[OverSets]:
    """Holm's p over the methods, and what it says."""
    adjusted = iter(holm([one.test.p for one in found if one.test.p is not None]))
    for one in found:
        p = None if one.test.p is None else next(adjusted)
        if p is None or one.test.smallest > alpha:
            yield replace(one, holm=p)
        else:
            better = "win" if one.mean > 0 else "loss"
            yield replace(one, holm=p, verdict=better if p <= alpha else "tie")


def over_sets_text(base: str, over: Sequence[OverSets]) -> str:
    """What holds over data sets, in a sentence; nothing where there are too few."""
    if not over:
        return ""
    sets = f"Over {max(len(one.differences) for one in over)} data sets"
    tests = sum(one.holm is not None for one in over)
    basis = f"({tests} test{'s' * (tests != 1)}, Holm)"
    better, worse = (
        ", ".join(mean_text(one) for one in over if one.verdict == verdict)
        for verdict in ("win", "loss")
    )
    found = (
        f"better than {base}: {better}"
        if better
        else (f"nothing is better than {base}, the best mean is {mean_text(over[0])}")
    )
    return f"{sets} {found}{f'; worse: {worse}' * bool(worse)} {basis}."


def mean_text(one: OverSets) -> str:
    """A method with its mean difference and the half of its interval.

    >>> mean_text(OverSets("new", (1.0, 2.0), 0, PValue(None), 0.3, None))
    'new (+1.5 ± 0.3)'
    """
    return f"{one.row} ({amount(one)})"


def amount(one: OverSets) -> str:
    """A mean difference and the half of its interval."""
    return f"{one.mean:+.1f}" + ("" if one.half_width is None else f" ± {one.half_width:.1f}")


@dataclass(frozen=True)
class Sight:
    """What the runs of a column could have seen: the median over the methods."""

    column: str
    seeds: int
    detectable: float  # the smallest true difference that the t-test finds four times in five
    seeds_a_point: float  # to find a difference of one percent point; infinite: no number is enough


def sights(comparisons: Iterable[Comparison]) -> list[Sight]:
    """One for each column in which some method was tested."""
    by_column: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.detectable is not None:
            by_column.setdefault(one.column, []).append(one)
    return [sight(column, tested) for column, tested in by_column.items()]


def sight(column: str, tested: Sequence[Comparison]) -> Sight:
    """One column's."""
    seeds = max(len(one.seeds) for one in tested)
    smallest = median(one.detectable for one in tested if one.detectable is not None)
    points = (inf if one.seeds_a_point is None else one.seeds_a_point for one in tested)
    return Sight(column, seeds, smallest, median(points))


def sight_text(seen: Sequence[Sight], over: Sequence[OverSets]) -> str:
    """What a table could have seen, in a sentence or two; nothing where nothing was tested.

    >>> sight_text([Sight("A", 5, 1.0, 7), Sight("B", 5, 3.04, inf)], [])
    'These runs would have shown a true difference of 1.0 points (A) to 3.0 (B) on one data set four times in five. A claim of one point takes 7 seeds (A); no number is enough on B.'
    """  # noqa: E501
    if not seen:
        return ""
    ordered = sorted(seen, key=lambda one: one.detectable)
    low, high = ordered[0], ordered[-1]
    spread = f"{low.detectable:.1f} points ({low.column})"
    if len(seen) > 1:
        spread += f" to {high.detectable:.1f} ({high.column})"
    overall = [one.detectable for one in over if one.detectable]
    over_all = f", and of {median(overall):.1f} as a mean over all" if overall else ""
    return (
        f"These runs would have shown a true difference of {spread} on one data set{over_all} "
        f"four times in five. {a_point_text(seen)}"
    )


def a_point_text(seen: Sequence[Sight]) -> str:
    """How many seeds a claim of one percent point takes."""
    never = [one.column for one in seen if not isfinite(one.seeds_a_point)]
    some = sorted(
        (one for one in seen if isfinite(one.seeds_a_point)), key=lambda one: one.seeds_a_point
    )
    parts = []
    if some:
        ends = [f"{one.seeds_a_point:.0f} seeds ({one.column})" for one in (some[0], some[-1])]
        parts.append(f"A claim of one point takes {' to '.join(dict.fromkeys(ends))}")
    if never:
        what = "no number is enough" if some else "No number of seeds is enough for one point"
        parts.append(f"{what} on {', '.join(never)}")
    return "; ".join(parts) + "."
