"""Many cells: what is missing, what it costs, and the processes that run it."""
