"""Run many cells: find what is missing, forecast its cost, and run it in processes."""
