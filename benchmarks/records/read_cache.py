"""Read each file once per command, so that its output describes one moment.

A table asks for the records of a place several times: for its rows, for data apart, for its
numbers, for comparisons. Within `one_moment` all of these see the same answer, though sweeps may
publish meanwhile; outside of it, as in a sweep, every question is answered anew.
"""

import atexit
import gc
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_memory: ContextVar[dict[Hashable, Any] | None] = ContextVar("memory", default=None)


@contextmanager
def one_moment() -> Iterator[None]:
    """Remember everything that is read within the block, or within the one that it is part of.

    What is found stays to its end: looking for garbage among it would be a tenth of the time.
    """
    outer, collecting = _memory.get(), gc.isenabled()
    token = _memory.set({} if outer is None else outer)
    gc.disable()
    try:
        yield
    finally:
        _memory.reset(token)
        if collecting:
            gc.freeze()
            gc.unfreeze()  # what is left is old now: no search begins with all of it
            gc.enable()


def remembered(what: Hashable, find: Callable[[], T]) -> T:
    """Return the value found earlier within the block, or find it now.

    >>> with one_moment():
    ...     [remembered("a", lambda i=i: i) for i in range(3)]
    [0, 0, 0]
    """
    memory = _memory.get()
    if memory is None:
        return find()
    if what not in memory:
        memory[what] = find()
    found: T = memory[what]
    return found


def remembered_of(it: object, what: Hashable, find: Callable[[], T]) -> T:
    """Return what was found earlier of this very object, which the memory keeps, or find it now."""
    return remembered((id(it), what), lambda: (find(), it))[0]


def within_moment() -> bool:
    return _memory.get() is not None


@atexit.register
def end_without_search() -> None:
    """Keep Python from a last search for garbage, a seventh of the time of a long comparison."""
    if "torch" not in sys.modules:  # whose bindings would report what is left as leaks
        gc.freeze()
