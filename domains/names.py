"""The names of our domains, for whoever shows them and reads none."""

OURS = ("graph", "image", "sentence", "tabular")  # the names of their folders
