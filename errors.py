"""Errors for a user's mistakes, one line each that names the fix."""

import difflib
import os
import signal
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, TextIO

MAX_ERROR_LENGTH = 2000  # characters of an error
MAX_KNOWN = 50  # names that an error lists
TOLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")  # by who starts several processes
MEETING = "CONTRASTBENCH_MEETING"  # where they find each other; torchrun's have MASTER_...


class UserError(ValueError):
    """A mistake of the user's: one line that names the fix; the command line exits with 2."""

    def __init__(self, message: str) -> None:
        super().__init__(cut_middle(printable(message)))


class UnusableSamples(UserError):
    """The samples that a seed drew do not do; those of another seed may."""


def printable(text: str) -> str:
    r"""The text with what would break its line, or command a terminal, as Python writes it.

    >>> print(printable("no file a\r\nb\x1b[2J"))
    no file a\r\nb\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def plural(count: int) -> str:
    """Return the ending of a word for so many."""
    return "" if count == 1 else "s"


def cut_middle(line: str) -> str:
    """Cut the middle of a line that a very long name would make too long to read.

    >>> len(cut_middle("no column " + 5_000_000 * "x" + ": choose another"))
    2000
    """
    if len(line) <= MAX_ERROR_LENGTH:
        return line
    return f"{line[: MAX_ERROR_LENGTH // 2 - 5]} ... {line[-MAX_ERROR_LENGTH // 2 :]}"


def tell(line: str, stream: IO[str] | None = None) -> None:
    """Print a line on the stream, by default standard error; it cannot command a terminal.

    A log on a full disk costs no training: standard error may fail.
    """
    with suppress(OSError) if stream is None else nullcontext():
        print(printable(line), file=stream or sys.stderr, flush=True)


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UserError:
    """The error for a name that is not among the known ones, with the closest of them.

    >>> unknown("loss", "adnc", ["adnce", "infonce"])
    UserError("unknown loss 'adnc': did you mean 'adnce'?")
    >>> unknown("loss", "hcl(beta=2)", ["adnce", "hcl"])
    UserError("unknown loss 'hcl(beta=2)': did you mean 'hcl'?")
    >>> unknown("network", "x", [f"net{k}" for k in range(200)])
    UserError("unknown network 'x': the closest of 200 are net99, net98, net97")
    """
    known = sorted(known)
    near = closest(name.partition("(")[0], known, 2, 0.6)
    if near:
        fix = f"did you mean {' or '.join(map(repr, near))}?"
    elif len(known) > MAX_KNOWN:
        fix = f"the closest of {len(known)} are {', '.join(closest(name, known, 3, 0.0))}"
    else:
        fix = f"known: {', '.join(known) or 'none'}"
    return UserError(f"unknown {kind} {name!r}: {fix}{hint}")


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise unless the name is among the known ones, as `unknown` says it."""
    if name not in known:
        raise unknown(kind, name, known)


def closest(name: str, known: Sequence[str], count: int, cutoff: float) -> list[str]:
    """Return at most so many of the names that are alike, the closest first.

    >>> closest("Adnc", ["adnce", "infonce"], 1, 0.6)
    ['adnce']
    """
    folded = {k.casefold(): k for k in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=count, cutoff=cutoff)
    return [folded[one] for one in found]


@contextmanager
def users_code(action: str, file: str = "") -> Iterator[None]:
    """Make whatever the user's own code raises, `sys.exit` included, one line with the cause.

    Args:
        action: what could not be done.
        file: the user's file, whose line is named.
    """
    try:
        with keep_streams():
            yield
    except UserError:
        raise
    except BaseException as error:
        if is_termination(error):
            raise
        text = ""
        with suppress(Exception):  # of its own class
            text = str(error).splitlines()[0]
        cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
        lines = [at for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
        where = f", line {lines[-1].lineno}" if lines else ""
        raise UserError(f"cannot {action}{where} ({cause}){BARE}") from error


BARE = ": start Python without -OO or PYTHONOPTIMIZE=2, as libraries read docstrings" * (
    sys.flags.optimize > 1
)


@contextmanager
def keep_streams() -> Iterator[None]:
    """Put standard output and error back afterwards, and what several processes were told."""
    streams, copies = (sys.stdout, sys.stderr), dict[int, int]()
    names = (*TOLD, MEETING, "MASTER_ADDR", "MASTER_PORT")
    told = {name: os.environ.get(name) for name in names}
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            copies[number] = os.dup(number)
    try:
        yield
    finally:
        for number, copy in copies.items():
            with suppress(OSError):  # the copy was closed, too
                os.dup2(copy, number)
                os.close(copy)
        sys.stdout, sys.stderr = map(reopened, streams, (1, 2))
        for name, value in told.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})


def reopened(stream: TextIO, number: int) -> TextIO:
    """Return a stream, or a new one for its file where it was closed or detached."""
    with suppress(ValueError):  # it was detached
        if stream is None or not stream.closed:
            return stream
    return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether there was too little memory for Python or NumPy, or for torch on any device.

    On a CPU torch raises a plain RuntimeError. This function does not import torch.
    """
    name, text = type(error).__name__, str(error)
    refused = isinstance(error, RuntimeError) and "DefaultCPUAllocator: can't allocate" in text
    return isinstance(error, MemoryError) or name == "OutOfMemoryError" or refused


def is_termination(error: BaseException) -> bool:
    """Return whether it is Ctrl-C, or what SIGTERM becomes: nothing may hold these up."""
    ended = isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM
    return ended or isinstance(error, KeyboardInterrupt)
