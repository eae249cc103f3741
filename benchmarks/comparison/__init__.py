"""Compare the rows of a table by paired tests."""
