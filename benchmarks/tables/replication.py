"""Whether a published value came back.

It did where ours and the printed value are at most two standard errors of their difference apart. A
paper that prints no deviation, or not over how many runs, has no error that is known: there ours
alone counts. A single outlying seed moves our mean, and widens its error so much that a large miss
passes.

Errors may be so large that nearly any printed value would come back. Where two of them are more
than 1.5 points and the value is within them, it is too wide to tell. The four papers' graph tables
put their own method 0.4 to 3.4 points above the baseline, and half of these gains are below 0.9.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot

CAME_BACK, MISSED, TOO_WIDE = "yes", "no", "too wide to tell"
WIDEST = 1.5  # points to each side that still tell
MAX_STANDARD_ERRORS = 2.0  # standard errors that a value may be away


@dataclass(frozen=True)
class Back:
    """One printed value beside our mean, both with their standard errors."""

    row: str
    column: str
    ours: float
    error: float
    printed: float
    printed_error: float | None  # None: it is not known

    @property
    def verdict(self) -> str:
        """Return whether it came back, did not, or whether that is too wide to tell.

        >>> [Back("r", "A", 80.0, 0.3, printed, 0.4).verdict for printed in (80.9, 81.1)]
        ['yes', 'no']
        """
        allowed = MAX_STANDARD_ERRORS * hypot(self.error, self.printed_error or 0.0)
        if abs(self.ours - self.printed) > allowed:
            return MISSED
        return TOO_WIDE if allowed > WIDEST else CAME_BACK


def own_first(backs: Iterable[Back], table: str) -> list[Back]:
    """Return those of the paper's own method first: a table's name begins with that method's.

    >>> found = [Back(name, "A", 80.0, 0.3, 80.0, None) for name in ("GraphCL", "R\u00e9nyiCL")]
    >>> [back.row for back in own_first(found, "renyicl-table6")] == ["R\u00e9nyiCL", "GraphCL"]
    True
    """
    own = plain(table.partition("-")[0])
    return sorted(backs, key=lambda back: own not in plain(back.row))


def plain(name: str) -> str:
    """Return a name in small letters without accents."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
