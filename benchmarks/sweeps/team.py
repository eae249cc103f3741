"""A worker of several ranks: start them, pass signals on, and say which one took the others along.

Its words are the number of ranks and the device of the first. Messages and replies are rank 0's.
Brings no torch.
"""

import sys

from contrastbench.benchmarks.running.launch import Job, launch
from contrastbench.benchmarks.running.signals import end_on_sigterm
from contrastbench.errors import tell

MODULE = "contrastbench.benchmarks.sweeps.worker"
LOST, NO_MEMORY = 76, 77  # exit codes; the last line on standard error says the rest


def main() -> None:
    """Run the ranks until they end."""
    end_on_sigterm()
    devices, (kind, _, card) = int(sys.argv[1]), sys.argv[2].partition(":")
    ending = launch(Job([MODULE, kind], sys.stdout, input=None, card=int(card or 0)), devices)
    if not ending.lost:
        sys.exit(ending.code)
    tell(ending.lost)
    sys.exit(NO_MEMORY if ending.in_need_of_memory else LOST)


if __name__ == "__main__":
    main()
