"""Whether a published value came back, by two rules.

Both say yes where ours and the printed value are at most two standard errors of their difference
apart. The first takes our mean. A single outlying seed moves it, and widens its error so much that
a large miss passes. The second takes the mean without the lowest and the highest fifth of the
seeds, with the error of Yuen (Biometrika 61, 1974), which no single one of five seeds can move far.
A median of five seeds with an error from their median deviation resists two outliers, but is less
precise. A paper that prints no deviation, or not over how many runs, has no error that is known:
there ours alone counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, stdev

MAX_STANDARD_ERRORS = 2.0  # standard errors that a value may be away
MAX_WORDS = 25  # of a line that counts each row
TRIMMED_SHARE = 0.2  # share of the seeds that is cut on each side (Wilcox 2012): one of five


@dataclass(frozen=True)
class Centre:
    """The middle of some seeds with its standard error."""

    value: float
    error: float

    def came_back(self, printed: float, error: float = 0.0) -> bool:
        """Return whether a printed value with this error is as near as chance allows.

        >>> Centre(80.0, 0.3).came_back(80.9, 0.4), Centre(80.0, 0.3).came_back(81.1, 0.4)
        (True, False)
        """
        return abs(self.value - printed) <= MAX_STANDARD_ERRORS * hypot(self.error, error)


def trimmed(values: Sequence[float]) -> Centre | None:
    """Return the trimmed mean; that of fewer than five values is the mean, and one has none.

    The error is sqrt((n - 1) s^2 / (h (h - 1))): s is the deviation of all n values where those
    that are cut stand at the nearest of the h others.

    >>> trimmed([70.0, 71.0, 56.0, 70.0, 72.0]).value == (70.0 + 71.0 + 70.0) / 3
    True
    """
    n, cut = len(values), int(TRIMMED_SHARE * len(values))
    if n < 2:
        return None
    kept = sorted(values)[cut : n - cut]
    drawn_in = [min(max(value, kept[0]), kept[-1]) for value in values]
    h = len(kept)
    return Centre(fmean(kept), stdev(drawn_in) * sqrt((n - 1) / (h * (h - 1))))


@dataclass(frozen=True)
class Back:
    """One printed value by both rules."""

    row: str
    column: str
    mean: Centre
    trimmed: Centre
    printed: float
    error: float | None  # of the printed value; None: it is not known

    @property
    def by_mean(self) -> bool:
        """Whether it came back by the mean."""
        return self.mean.came_back(self.printed, self.error or 0.0)

    @property
    def by_trimmed(self) -> bool:
        """Whether it came back by the trimmed mean."""
        return self.trimmed.came_back(self.printed, self.error or 0.0)


REPLICATION_RULE = (
    "A printed value came back where it is within two standard errors of the difference from our "
    "mean, and by the rule that no single outlier moves from our trimmed mean (a fifth of the "
    "seeds cut on each side; Yuen 1974)."
)
NO_DEVIATION_NOTE = (
    "Where the paper prints no deviation, or not over how many runs, our error alone counts, which "
    "misses more."
)


def back_text(found: Sequence[Back], decimals: int) -> str:
    """Return the rule, how many values of each row came back, and where both rules disagree.

    >>> far, near = Centre(67.8, 2.8), Centre(70.5, 0.1)
    >>> back_text([Back("ADNCE", "COLLAB", far, near, 72.3, 0.5)], 1).partition("1974). ")[2]
    'By mean and trimmed mean: ADNCE 1 and 0 of 1. They disagree on ADNCE, COLLAB: 72.3 is printed, our mean is 67.8 (came back), our trimmed mean 70.5 (missed).'
    """  # noqa: E501
    if not found:
        return ""
    alone = [NO_DEVIATION_NOTE] if any(one.error is None for one in found) else []
    counted = f"By mean and trimmed mean: {', '.join(replication_counts(found))}."
    parts = [disagreement(one, decimals) for one in found if one.by_mean != one.by_trimmed]
    apart = [f"They disagree on {'; '.join(parts)}."] if parts else []
    return " ".join([REPLICATION_RULE, *alone, counted, *apart])


def back_line(found: Sequence[Back]) -> str:
    """Return in a line how many values came back by the mean: of each row where that is short.

    >>> near = Centre(70.5, 0.1)
    >>> back_line([Back("ADNCE", "COLLAB", near, near, 72.3, 0.5)])
    'ADNCE: 0 of 1 printed values came back within two standard errors.'
    """
    if not found:
        return ""
    rows: dict[str, list[bool]] = {}
    for one in found:
        rows.setdefault(f"{one.row}: ", []).append(one.by_mean)
    whole = {"": [one.by_mean for one in found]}
    by_row, in_all = map(came_back, (rows, whole))
    return by_row if len(by_row.split()) <= MAX_WORDS else in_all


def came_back(found: Mapping[str, Sequence[bool]]) -> str:
    """Return how many values came back, with what stands before each count."""
    counts = (f"{name}{sum(back)} of {len(back)}" for name, back in found.items())
    return f"{'; '.join(counts)} printed values came back within two standard errors."


def replication_counts(found: Sequence[Back]) -> Iterable[str]:
    """Yield how many values of each row came back by either rule."""
    for row in dict.fromkeys(one.row for one in found):
        mine = [one for one in found if one.row == row]
        by_mean, by_trimmed = (sum(one.by_mean for one in mine), sum(o.by_trimmed for o in mine))
        yield f"{row} {by_mean} and {by_trimmed} of {len(mine)}"


def disagreement(one: Back, decimals: int) -> str:
    """Return what both rules say of a value."""
    words = {True: "came back", False: "missed"}
    return (
        f"{one.row}, {one.column}: {one.printed:.{decimals}f} is printed, our mean is "
        f"{one.mean.value:.{decimals}f} ({words[one.by_mean]}), our trimmed mean "
        f"{one.trimmed.value:.{decimals}f} ({words[one.by_trimmed]})"
    )
