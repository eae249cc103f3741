"""Words that several sentences on a comparison share: names, sets, effects."""

from collections.abc import Collection, Sequence

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.effects import Effect, OverSets
from contrastbench.benchmarks.comparison.numbers import signed

MAX_NAMES = 4  # names in one list of the answer


def names_text(names: Sequence[str]) -> str:
    """Return names in a sentence, of many the first ones; the rows below have them all.

    >>> names_text(["a", "b"]), names_text(list("abcdef"))
    ('a, b', 'a, b, c and 3 more')
    """
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES - 1])} and {len(names) - MAX_NAMES + 1} more"


def where_text(sets: int, over: OverSets) -> str:
    """Return the data sets that a verdict holds for: these alone, or those that are like them.

    >>> where_text(8, OverSets([]))
    'over 8 data sets'
    """
    found = f"{sets} data set{'s' * (sets != 1)}"
    return f"on {'these' if sets != 1 else 'this'} {found}" if over.on_these else f"over {found}"


def in_the_mean(domains: Collection[str], end: str = "") -> str:
    """Return what an effect is the mean over, as the effects of domains may have both signs."""
    return f" in the mean over domains{end}" * (len(domains) > 1)


def sets_text(comparisons: Sequence[Comparison]) -> str:
    """Return how many columns there are; data sets, where each is one of its own."""
    columns = len({one.column for one in comparisons})
    sets = len({(one.domain, one.dataset) for one in comparisons})
    return f"{columns} {'data set' if columns == sets else 'column'}{'s' * (columns > 1)}"


def effect_with_unit(one: Effect, over: OverSets) -> str:
    """Return an effect with its unit.

    >>> effect_with_unit(Effect("new", {}, 0, 2.25, (0.0, 3.0), 0.1, 1.0), OverSets([]))
    '+2.2 points'
    """
    return f"{signed(one.estimate, over.decimals)} {'%' if over.gains else 'points'}"
