"""Compare the rows of a table with a baseline: scores, effects, verdicts."""

from enum import StrEnum


class Verdict(StrEnum):
    """What a comparison says of a row, on a single data set or over sets."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal"  # within the margin; over sets alone
    UNDECIDED = "undecided"
    UNTESTED = "untested"
    FAILED = "failed"


DECIDED = (Verdict.BETTER, Verdict.WORSE)
