"""Two operations on one folder of records, switched at calls of the file system.

The first runs to its k-th call and stops, the second runs to its own, then the first ends, or is
killed, and then the second ends. forked.py forks the processes.
"""

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import files, packing, packs, reading, store
from contrastbench.benchmarks.records.merge import merge_records
from made_records import add

LOSSES = ("adnce", "infonce")
CALLS = {"open", "sqlite3.connect", "shutil.copyfile"} | {
    f"os.{name}" for name in ("link", "remove", "rename", "scandir", "listdir", "mkdir")
}
NEVER = 10**9  # a call that no operation comes to
Contents = dict[str, store.Record]


def prepare() -> None:
    """Write files one after another, so that calls come in the same order each time."""
    files.AT_ONCE = 1


def fill(results: Path, seeds: range) -> None:
    for loss in LOSSES:
        for seed in seeds:
            add(results, seed, 60.0 + seed, loss=loss)


def loose(results: Path) -> None:
    """A folder of files."""
    fill(results, range(4))
    add(results, 9, 50.0, status="failed")


def packed(results: Path) -> None:
    """A folder of one pack."""
    loose(results)
    list(packing.pack(results))


def mixed(results: Path) -> None:
    """A folder of a pack, files beside it, and files that are in the pack too."""
    fill(results, range(2))
    copied = {path: path.read_bytes() for path in results.rglob("*-seed0.json")}
    list(packing.pack(results))
    fill(results, range(2, 4))
    for path, data in copied.items():
        path.write_bytes(data)
    add(results, 9, 50.0, status="failed")


def two(results: Path) -> None:
    """A folder of two packs."""
    fill(results.with_name("other"), range(2, 4))
    list(packing.pack(results.with_name("other")))
    fill(results, range(2))
    list(packing.pack(results))
    merge_records([results.with_name("other")], results)
    add(results, 9, 50.0, status="failed")


STARTS = {start.__name__: start for start in (loose, packed, mixed, two)}


def contents(results: Path) -> Contents:
    """The records by their names, each of them once."""
    found = [
        (path.relative_to(results).as_posix(), one) for path, one in reading.all_records(results)
    ]
    assert len(dict(found)) == len(found), "a record is shown twice"
    return dict(found)


class Folders(NamedTuple):
    """Where the operations of a trial work."""

    results: Path
    extra: Path  # is merged into the results
    target: Path  # the results are merged into it
    expected: Contents


def pack(of: Folders) -> None:
    list(packing.pack(of.results))


def undo(of: Folders) -> None:
    list(packing.unpack(of.results))


def merge_in(of: Folders) -> None:
    """Merge the extra records, of which half are there."""
    done = merge_records([of.extra], of.results)
    assert (done.added, done.equal, done.unequal) == (4, 4, []), done


def merge_out(of: Folders) -> None:
    """Merge what is there into another folder, which misses nothing then."""
    done = merge_records([of.results], of.target)
    assert done.unequal == []
    assert same(contents(of.target), of.expected)


def read(of: Folders) -> None:
    """Read everything in three ways."""
    assert same(contents(of.results), of.expected)
    dataset = of.results / "runs/graph/MUTAG"
    expected = [name for name, record in of.expected.items() if record["status"] == "ok"]
    assert sum(len(took) for _, took in reading.recorded_seconds(dataset)) >= len(expected)
    assert sum(n for loss in LOSSES for _, n in reading.finished_cells(dataset / loss)) >= len(
        expected
    )
    assert all(reading.find_record(of.results / name) == one for name, one in of.expected.items())


def publish(of: Folders) -> None:
    """Publish records as sweeps do: unless they are there."""
    for path, record in reading.all_records(of.extra):
        wanted = of.results / path.relative_to(of.extra)
        if reading.find_record(wanted) is None:
            store.publish_record(record, wanted)


OPERATIONS: dict[str, Callable[[Folders], None]] = {
    work.__name__: work for work in (pack, undo, merge_in, merge_out, read, publish)
}


def same(found: Contents, expected: Contents) -> bool:
    """Whether all that is expected was found; another operation may have added more."""
    missing = expected.keys() - found.keys()
    assert not missing, f"{len(missing)} records are missing"
    return all(found[name] == record for name, record in expected.items())


def stopping(root: Path, call: int) -> Callable[[], int]:
    """Stop this process before its n-th call on a file in the folder; return the calls' counter."""
    count = 0

    def called(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in CALLS and any(str(root) in str(argument) for argument in arguments):
            if count == call:
                count += 1
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                count += 1

    sys.addaudithook(called)
    for name in ("stat", "lstat"):  # which are not audited
        setattr(os, name, noted(getattr(os, name), called))
    return lambda: count


def noted(call: Callable[..., Any], called: Callable[[str, tuple[Any, ...]], None]) -> Any:
    """The call, which is noted before."""

    def noting(*arguments: Any, **named: Any) -> Any:
        called("open", arguments)
        return call(*arguments, **named)

    return noting


def child(name: str, folders: Folders, call: int) -> int:
    """Start an operation that stops before that call; its process."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        calls = stopping(folders.results.parent, call)
        OPERATIONS[name](folders)
        code = 0
        if call == NEVER:
            (folders.results.parent / f"calls-{name}").write_text(str(calls()))
    except BaseException as error:
        (folders.results.parent / "error").open("a").write(f"{name}: {error!r}\n")
    finally:
        os._exit(code)


def until_stopped(pid: int) -> bool:
    """Whether a process has stopped; else it has ended, and well."""
    status = os.waitpid(pid, os.WUNTRACED)[1]
    assert os.WIFSTOPPED(status) or status == 0, "an operation failed"
    return os.WIFSTOPPED(status)


def ended(pid: int, number: int) -> None:
    """Let a stopped process end, or kill it."""
    os.kill(pid, number)
    expected = number if number == signal.SIGKILL else 0
    assert os.waitpid(pid, 0)[1] == expected, "an operation failed"


def trial(first: str, second: str, folders: Folders, calls: tuple[int, int], end: int) -> None:
    """Run both, switched at those calls; nothing is lost and nothing is left over."""
    one = child(first, folders, calls[0])
    stopped = until_stopped(one)
    other = child(second, folders, calls[1])
    if until_stopped(other):
        if stopped:
            ended(one, end)
        ended(other, signal.SIGCONT)
    elif stopped:
        ended(one, end)
    check(folders, {first, second}, killed=end == signal.SIGKILL)


def check(folders: Folders, names: set[str], killed: bool) -> None:
    """Assert that every record is there once, and that the next pack leaves one file."""
    expected = dict(folders.expected)
    if names & {"merge_in", "publish"} and not killed:
        expected |= contents(folders.extra)
    assert same(contents(folders.results), expected)
    store.remove_leftovers(folders.results)
    list(packing.pack(folders.results))
    assert same(contents(folders.results), expected)
    dataset = folders.results / "runs/graph/MUTAG"
    left = [
        path.name for path in dataset.rglob("*") if path.is_file() and "failed" not in path.name
    ]
    assert len(left) == 1, f"one pack, not {left}"
    assert len(list(dataset.glob(packs.PACK_PATTERN))) == 1


def trials(first: str, second: str, count: int, seed: str, kill: bool, root: str) -> None:
    """Run so many trials; what is wrong is in the file `wrong`."""
    rng, folder = random.Random(seed), Path(root)
    made = {name: prepared(folder / name, start) for name, start in STARTS.items()}
    lengths = [length(name, folder, made) for name in (first, second)]
    wrong = []
    for number in range(count):
        start = rng.choice(list(STARTS))
        calls = (rng.randrange(lengths[0]), rng.choice((NEVER, rng.randrange(lengths[1]))))
        folders = copied(folder / "trial", folder / start, made[start])
        try:
            trial(first, second, folders, calls, signal.SIGKILL if kill else signal.SIGCONT)
        except Exception as error:
            said = folder / "trial/error"
            wrong.append(
                f"{number} {start} {calls}: {error} {said.read_text() if said.exists() else ''}"
            )
        shutil.rmtree(folder / "trial")
    (folder / "wrong").write_text("\n".join(wrong))


def prepared(root: Path, start: Callable[[Path], None]) -> Contents:
    """Make the folders of a start; what is in them."""
    start(root / "results")
    fill(root / "extra", range(2, 6))
    list(packing.pack(root / "extra"))
    list(packing.unpack(root / "extra"))
    return contents(root / "results")


def copied(trial: Path, start: Path, expected: Contents) -> Folders:
    """Copy the start into fresh folders."""
    for name in ("results", "extra"):
        shutil.copytree(start / name, trial / name)
    return Folders(trial / "results", trial / "extra", trial / "target", expected)


def length(name: str, folder: Path, made: dict[str, Contents]) -> int:
    """How many calls an operation makes alone."""
    folders = copied(folder / "alone", folder / "mixed", made["mixed"])
    assert not until_stopped(child(name, folders, NEVER))
    count = int((folder / f"alone/calls-{name}").read_text())
    shutil.rmtree(folder / "alone")
    return count
