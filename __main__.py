"""`python -m contrastbench`: the command line; torchrun takes it too."""

from contrastbench.benchmarks.cli.main import main

if __name__ == "__main__":
    main()
