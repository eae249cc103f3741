"""What a command shows is of one moment, and is read once for it.

A table asks for the records of a place several times: for its rows, for data apart, for its
numbers, for comparisons. Within `one_moment` all of these see the same answer, though sweeps may
publish meanwhile; outside of it, as in a sweep, every question is answered anew.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar, cast

T = TypeVar("T")
_memory: ContextVar[dict[Hashable, object] | None] = ContextVar("memory", default=None)


@contextmanager
def one_moment() -> Iterator[None]:
    """Ask for each thing once within the block."""
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(what: Hashable, find: Callable[[], T]) -> T:
    """What is found, or was found at this moment before.

    >>> with one_moment():
    ...     [remembered("a", lambda i=i: i) for i in range(3)]
    [0, 0, 0]
    """
    memory = _memory.get()
    if memory is None:
        return find()
    if what not in memory:
        memory[what] = find()
    return cast(T, memory[what])
