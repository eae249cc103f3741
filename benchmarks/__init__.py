"""The runner: cells, records, tables and the command line."""
