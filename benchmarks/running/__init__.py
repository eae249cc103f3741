"""Run one cell: train a loss in a domain and score it."""
