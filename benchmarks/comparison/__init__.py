"""Compare the rows of a table by paired tests."""

DECIDED = ("better", "worse")
DIFFERENT = (*DECIDED, "mixed")  # over data sets
VERDICTS = ("better", "undecided", "worse", "untested", "failed")  # on a single data set
