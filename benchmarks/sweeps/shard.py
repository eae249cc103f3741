"""Divide the cells of a sweep among machines that share nothing, by the hash of a cell's key.

A cell is in the same shard on every machine and in every order of a file. What trials decide is
known to a shard only when it has the records of all of them: until then such cells are in no
shard. Brings no torch.
"""

import re
from dataclasses import dataclass

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.errors import UserError


@dataclass(frozen=True)
class Shard:
    """One of several shards, counted from zero."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, task: Task) -> bool:
        """Return whether the task belongs to this shard."""
        return self.count == 1 or int(store.json_digest(task.key), 16) % self.count == self.index


WHOLE_SWEEP = Shard(0, 1)


def parse_shard(text: str | None) -> Shard:
    """Read the text of `--shard` as a shard; None: the whole sweep.

    Raises:
        UserError: it is none.

    >>> parse_shard("0/3")
    Shard(index=0, count=3)
    """
    if text is None:
        return WHOLE_SWEEP
    match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise UserError(
            f"--shard {text}: give a number from 0 and the number of shards, such as 0/3, 1/3 "
            "and 2/3"
        )
    return Shard(int(match[1]), int(match[2]))
