"""Compare the rows of a table by paired tests."""

from enum import StrEnum


class Verdict(StrEnum):
    """What a comparison says of a row: on a single data set, over sets, or of a control."""

    BETTER = "better"
    UNDECIDED = "undecided"
    WORSE = "worse"
    UNTESTED = "untested"
    FAILED = "failed"
    MIXED = "mixed"  # better in one domain and worse in another
    EQUAL = "equal"  # within the margin
    BELOW = "below"
    NOT_BELOW = "not below"
    TOO_FEW_SETS = "too few sets"
    TOO_FEW_SEEDS = "too few seeds"
    SAME_LOSS = "the same loss"  # as the baseline on each set, so there is nothing to test
    SAME_SO_FAR = "the same loss so far"  # it is another one on a set on which it has not run


# on a single data set
VERDICTS = (Verdict.BETTER, Verdict.UNDECIDED, Verdict.WORSE, Verdict.UNTESTED, Verdict.FAILED)
TOO_FEW = (Verdict.TOO_FEW_SETS, Verdict.TOO_FEW_SEEDS)  # sets or seeds for any verdict
DECIDED = (Verdict.BETTER, Verdict.WORSE)
DIFFERENT = (*DECIDED, Verdict.MIXED)  # over data sets
