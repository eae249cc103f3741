"""Rows of a table against each other: paired tests and ranks."""
