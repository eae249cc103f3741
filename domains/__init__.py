"""Domains: data, models and scores, one folder for each kind of data."""

OURS = ("graph", "image", "sentence", "tabular")  # domains, by the names of their folders
