"""The command line without its work: words are read, checked and answered, nothing is trained.

A process of its own reads lists of words, a line of JSON each, and answers each with its exit code
and what it said, and how long it took. Whoever asks for work that takes longer has asked well: exit
code 0.
"""

import contextlib
import io
import json
import signal
import sys
import time
import traceback
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


def answers(main: Any) -> None:
    """Answer every line of standard input."""
    signal.signal = lambda *_: None  # type: ignore[assignment]
    channel = sys.stdout
    for line in sys.stdin:
        out, err, start = io.StringIO(), io.StringIO(), time.perf_counter()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = ask(main, json.loads(line))
        took = time.perf_counter() - start
        print(
            json.dumps([code, out.getvalue()[-500:], err.getvalue(), took]),
            file=channel,
            flush=True,
        )


if __name__ == "__main__":
    answers(without_work())
