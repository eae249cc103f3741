"""Whether a published value came back, by two rules.

Both say yes where ours and the printed value are at most two standard errors of their difference
apart. The first takes our mean. A single outlying seed moves it, and widens its error so much that
a large miss passes. The second takes the mean without the lowest and the highest fifth of the
seeds, with the error of Yuen (Biometrika 61, 1974), which no single one of five seeds can move far.
A median of five seeds with an error from their median deviation resists two outliers, but is less
precise. A paper that prints no deviation, or not over how many runs, has no error that is known:
there ours alone counts.

Errors may be so large that nearly any printed value would come back. Where two of them are more
than 1.5 points and the value is within them, it is too wide to tell. The four papers' graph tables
put their own method 0.4 to 3.4 points above the baseline, and half of these gains are below 0.9.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, stdev

CAME_BACK, MISSED, TOO_WIDE = "yes", "no", "too wide to tell"
WIDEST = 1.5  # points to each side that still tell
MAX_STANDARD_ERRORS = 2.0  # standard errors that a value may be away
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
    def verdict(self) -> str:
        """Return whether it came back by the mean, did not, or whether that is too wide to tell."""
        if not self.by_mean:
            return MISSED
        wide = MAX_STANDARD_ERRORS * hypot(self.mean.error, self.error or 0.0) > WIDEST
        return TOO_WIDE if wide else CAME_BACK

    @property
    def by_trimmed(self) -> bool:
        """Whether it came back by the trimmed mean."""
        return self.trimmed.came_back(self.printed, self.error or 0.0)


def own_first(backs: Iterable[Back], table: str) -> list[Back]:
    """Return those of the paper's own method first: a table's name begins with that method's.

    >>> at = Centre(80.0, 0.3)
    >>> found = [Back(name, "A", at, at, 80.0, None) for name in ("GraphCL", "R\u00e9nyiCL")]
    >>> [back.row for back in own_first(found, "renyicl-table6")] == ["R\u00e9nyiCL", "GraphCL"]
    True
    """
    own = plain(table.partition("-")[0])
    return sorted(backs, key=lambda back: own not in plain(back.row))


def plain(name: str) -> str:
    """Return a name in small letters without accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
