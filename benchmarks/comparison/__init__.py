"""Compare the rows of a table by paired tests."""

DECIDED = ("better", "worse")
VERDICTS = ("better", "undecided", "worse", "untested", "failed")  # on a single data set
