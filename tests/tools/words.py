"""The command line without its work: words are read, checked and answered, nothing is trained.

A process of its own answers lists of words, each with its exit code, what it said was wrong, and
how long it took. Whoever asks for work that takes longer has asked well: exit code 0.
"""

import io
import json
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import Connection
from os import chdir
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, NoReturn

ROOM = "contrastbench.benchmarks."
WORK = (  # modules that work, and bring torch, which takes seconds
    "cli.doctor",
    *("running.runner", "running.opening", "running.devices", "running.ranks"),
    *("checks.device", "checks.domain", "sweeps.sweep", "sweeps.slurm"),
    "report.table_pages",
)


class AtWork(BaseException):
    """The words were understood."""


def work(*_: object, **__: object) -> NoReturn:
    raise AtWork


class Stub(ModuleType):
    """Has whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return work


def without_work() -> Any:
    """The command line's main function, once all doors are shut."""
    for name in (*(f"{ROOM}{room}" for room in WORK), "contrastbench.losses.laws"):
        sys.modules[name] = Stub(name)
    from contrastbench.benchmarks import report
    from contrastbench.benchmarks.cli import main
    from contrastbench.benchmarks.records import packs
    from contrastbench.benchmarks.running import launch
    from contrastbench.domains import registry

    packs.SHIPPED = few_records()
    launch.launch = registry.fetch = report.write_report = work
    return main.main


def few_records() -> Path:
    """Return a folder with one record in the place of the thousands that are shipped."""
    folder = Path(mkdtemp())
    record = json.loads((Path(__file__).parents[1] / "attack/releases/tabular.json").read_text())
    names = record["domain"], record["dataset"], record["loss"]
    path = folder.joinpath("runs", *names, f"{record['key'][:16]}-seed{record['seed']}.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    return folder


def ask(main: Any, words: list[str]) -> int:
    """Return the exit code of a command."""
    sys.argv = ["bench", *words]
    try:
        main()
    except AtWork:
        return 0
    except SystemExit as stop:
        return stop.code or 0  # type: ignore[return-value]
    except BaseException:
        traceback.print_exc()
        return -1
    return 0


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and groups of commands below a group by the words that are typed."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


def answer(folder: Path, pipe: Connection) -> None:
    """Answer lists of words in a folder until nobody asks."""
    main = without_work()
    chdir(folder)
    signal.signal = lambda *_: None  # type: ignore[assignment]
    with suppress(EOFError):
        while True:
            words, err, start = pipe.recv(), io.StringIO(), time.perf_counter()
            with redirect_stdout(io.StringIO()), redirect_stderr(err):
                code = ask(main, words)
            pipe.send((code, err.getvalue(), time.perf_counter() - start))
