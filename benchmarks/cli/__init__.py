"""The command line: `bench`, also installed as `contrastbench`."""
