"""Many commands at once on one folder of records, each in a process that is stopped at random.

forked.py forks the process that starts them.
"""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from contrastbench.benchmarks import report  # noqa: F401 - imported before the fork
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.report import comparison as comparisons  # noqa: F401
from contrastbench.benchmarks.report import (
    site,  # noqa: F401
    tables,  # noqa: F401
)
from contrastbench.benchmarks.sweeps import plan as plans  # noqa: F401
from contrastbench.losses.spec import LossSpec
from made_records import record_of

SUITE = "seeds: 0-9\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce, adnce]\n"
WORK = [Experiment("graph", "MUTAG", LossSpec(loss), {}) for loss in ("infonce", "adnce")]
RECORDS = [
    record_of(work, seed, metrics={"accuracy": 50.0 + seed}) for seed in range(40) for work in WORK
]
AT_ONCE = 6
TICK = 0.002  # seconds between signals


def prepare() -> None:
    """Block the signal that a child has ended, to wait for it with a limit."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})


def bench(results: Path, *words: str) -> None:
    """Run a command on a folder of results."""
    app([*words, "--results", str(results)], standalone_mode=False)


def sweep(folder: Path, rng: random.Random) -> None:
    """Write some records that are not there, and note each."""
    for record in rng.sample(RECORDS, 6):
        path = store.record_path(folder / "results", record)
        if reading.find_record(path) is None:
            store.publish_record(record, path)
            note(folder, path.name)


def note(folder: Path, name: str) -> None:
    with (folder / "published").open("ab", buffering=0) as log:
        log.write(f"{name}\n".encode())


def noted(folder: Path) -> set[str]:
    """The names of records that were published."""
    return set((folder / "published").read_text().split())


def merge_in(folder: Path, rng: random.Random) -> None:
    """Merge some records from another folder, loose or packed."""
    other = folder / f"from-{os.getpid()}"
    some = rng.sample(RECORDS, 6)
    for record in some:
        store.publish_record(record, store.record_path(other, record))
    if rng.random() < 0.5:
        bench(other, "pack")
    bench(folder / "results", "merge", str(other))
    for record in some:
        note(folder, store.record_path(other, record).name)
    shutil.rmtree(other)


def merge_out(folder: Path, _: random.Random) -> None:
    """Merge into another folder, which has all that was published before."""
    before, other = noted(folder), folder / f"to-{os.getpid()}"
    bench(other, "merge", str(folder / "results"))
    assert before <= names(other), "a merge is short"
    shutil.rmtree(other)


def names(results: Path) -> set[str]:
    """The names of all records, each of which is there once."""
    found = [path.name for path, _ in reading.all_records(results)]
    assert len(set(found)) == len(found), "a record is shown twice"
    return set(found)


def read(folder: Path, _: random.Random) -> None:
    before = noted(folder)
    assert before <= names(folder / "results"), "a reader misses a record"


def shows(*words: str) -> Callable[[Path, random.Random], None]:
    """A command that only reads."""
    return lambda folder, _: bench(folder / "results", *words)


COMMANDS: dict[str, tuple[int, Callable[[Path, random.Random], None]]] = {  # and how frequent
    "sweep": (24, sweep),
    "merge in": (8, merge_in),
    "merge out": (8, merge_out),
    "read": (12, read),
    "table": (6, shows("table", "suite.yaml")),
    "plan": (4, shows("plan", "suite.yaml")),
    "report": (2, shows("report", "suite.yaml", "--output", "pages")),
}


def start(name: str, folder: Path, seed: str) -> int:
    """Start a command in a process of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        COMMANDS[name][1](folder, random.Random(seed))
        code = 0
    except BaseException as error:
        with (folder / "wrong").open("a") as log:
            log.write(f"{name}: {error!r}\n")
    finally:
        os._exit(code)


def storm(root: str, seed: str, count: int) -> None:
    """Run so many commands, some at a time; stop and continue them at random."""
    folder, rng = Path(root), random.Random(seed)
    os.chdir(folder)
    (folder / "suite.yaml").write_text(SUITE)
    first = store.record_path(folder / "results", RECORDS[0])
    store.publish_record(RECORDS[0], first)
    note(folder, first.name)
    going, stopped, kinds = set[int](), set[int](), list(COMMANDS)
    weights = [weight for weight, _ in COMMANDS.values()]
    while count or going or stopped:
        if count and len(going | stopped) < AT_ONCE:
            (name,) = rng.choices(kinds, weights)
            going.add(start(name, folder, str(rng.random())))
            count -= 1
        signal.sigtimedwait({signal.SIGCHLD}, TICK)
        going -= ended(going)
        disturb(rng, going, stopped)


def ended(going: set[int]) -> set[int]:
    """The processes that have ended."""
    return {pid for pid in going if os.waitpid(pid, os.WNOHANG)[0]}


def disturb(rng: random.Random, going: set[int], stopped: set[int]) -> None:
    """Stop a process, or let one go on."""
    if going and len(stopped) < AT_ONCE // 2 and rng.random() < 0.5:
        move(rng.choice(sorted(going)), going, stopped, signal.SIGSTOP)
    elif stopped and (not going or rng.random() < 0.5):
        move(rng.choice(sorted(stopped)), stopped, going, signal.SIGCONT)


def move(pid: int, source: set[int], target: set[int], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    source.remove(pid)
    target.add(pid)
