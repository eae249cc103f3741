"""1,000 SIGKILLs at any moment, of whatever writes records: nothing lost, doubled, torn.

Publishing, merging, packing, and sweeps with their worker processes. At least 5 % of the kills of
each must hit a write; the run's summary has the sum of all.
"""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import victims
from contrastbench.benchmarks.records import packing, reading, store
from counts import dice, times
from forked import Lives, lives

SEEDS = list(range(len(victims.RECORDS)))
FINE = "0 lost, doubled, corrupt"
KILLS = {
    **{"publish": times(430), "merge": times(440), "pack": times(60), "unpack": times(40)},
    "sweeps": times(30, least=6),
}
MOST = 100  # further kills where too few hit a write by chance
Report = Callable[[str, int, int], None]


def enough(what: str, kills: int, hits: int) -> bool:
    further = kills - KILLS[what]
    return further >= 0 and (hits >= kills / 20 or further >= MOST)


@pytest.fixture(scope="module")
def undertaker() -> Iterator[Lives]:
    """Lets victims live side by side, each with its moment of death; returns how they ended."""
    with lives(victims) as living:
        yield living


def unfinished(folder: Path, remove: bool = False) -> int:
    """How many of the killed have left unfinished files, which name them."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name.startswith(".")]
    for path in paths * remove:
        path.unlink()
    return len({path.name.split(".")[2] for path in paths})  # .HOST.PROCESS.RANDOM.tmp


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture
def killed(found: Callable[[str], None], record_property: Callable[[str, object], None]) -> Report:
    """Says how many kills hit a write; those that hit none show nothing."""

    def report(what: str, kills: int, hits: int) -> None:
        record_property("kills", (kills, hits))
        found(f"store: {kills} kills of {what}, {100 * hits / kills:.0f} % within a write: {FINE}")
        assert hits >= kills / 20, f"only {hits} of {kills} hit a write: it attacks nothing"

    return report


def test_a_thousand_kills() -> None:
    assert sum(KILLS.values()) >= times(1000)


def test_publish(undertaker: Lives, ram: Path, killed: Report) -> None:
    """Two processes publish the same records in opposite order, and are killed."""
    whole, log = ram / "whole", ram / "log"
    alive = undertaker.seconds("publish", str(whole), str(ram / "alive"), SEEDS)
    expected, rng, kills, hits = contents(whole), dice("publish"), 0, 0
    for round_ in count():
        if enough("publish", kills, hits):
            break
        results = ram / str(round_)
        if round_ % 50 == 49:  # what else the machine does comes and goes
            alive = undertaker.seconds("publish", f"{results}-alone", str(ram / "alive"), SEEDS)
        log.write_text("")  # both may be dead before they write
        orders = (SEEDS, SEEDS[::-1])
        died = undertaker(
            *(("publish", str(results), str(log), o, rng.uniform(0, alive)) for o in orders)
        )
        kills += died.count(-signal.SIGKILL)
        hits += unfinished(results)
        there = contents(results)
        assert there.items() <= expected.items()
        said = {int(line) for line in log.read_text().split()}
        assert said <= {store.read_record(results / name)["seed"] for name in there}
    killed("two that publish", kills, hits)


def test_merge(undertaker: Lives, ram: Path, killed: Report) -> None:
    """Two merges into one folder; what they leave, the next one completes."""
    source = ram / "source"
    for record in victims.RECORDS:
        store.publish_record(record, store.record_path(source, record))
    alive = undertaker.seconds("unite", str(source), str(ram / "whole"))
    expected, rng, kills, hits = contents(source), dice("merge"), 0, 0
    assert contents(ram / "whole") == expected
    for round_ in count():
        if enough("merge", kills, hits):
            break
        results = ram / str(round_)
        life = ("unite", str(source), str(results))
        died = undertaker(*((*life, rng.uniform(0, alive)) for _ in range(2)))
        kills += died.count(-signal.SIGKILL)
        hits += unfinished(results)
        assert contents(results).items() <= expected.items()
        if round_ % 10 == 0:
            for name in [*contents(results)][:1]:
                (results / name).unlink()  # else the next one may have nothing to write
            assert undertaker((*life, None)) == [0]
            assert (contents(results), unfinished(results)) == (expected, 0)
    killed("two that merge", kills, hits)


@pytest.mark.parametrize("what", ["pack", "unpack"])
def test_pack(undertaker: Lives, ram: Path, killed: Report, what: str) -> None:
    """A pack of a folder, or its undoing: each record is in a file or a pack at any moment."""
    source, other, whole = ram / "source", ram / "other", ram / "whole"
    for record in victims.RECORDS:
        store.publish_record(record, store.record_path(source, record))
    shutil.copytree(source, other)
    list(packing.pack(other))
    if what == "unpack":
        source, other = other, source
    shutil.copytree(source, whole)
    alive = undertaker.seconds(what, str(whole))
    expected, rng, kills, hits = records(source), dice(what), 0, 0
    assert records(whole) == expected
    for round_ in count():
        if enough(what, kills, hits):
            break
        results = Path(shutil.copytree(source, ram / str(round_)))
        life = (what, str(results))
        kills += undertaker((*life, rng.uniform(0, alive))) == [-signal.SIGKILL]
        hits += unfinished(results)
        assert records(results) == expected
        if round_ % 10 == 0:
            assert undertaker((*life, None)) == [0]
            assert (contents(results), unfinished(results)) == (contents(other), 0)
        shutil.rmtree(results)
    killed(f"one that {what}s", kills, hits)


def records(results: Path) -> dict[str, store.Record]:
    """What is read of files and packs."""
    found = reading.all_records(results)
    return {path.relative_to(results).as_posix(): record for path, record in found}


CELLS = "seeds: 0-59\ndomains: {graph: {}}\nlosses: [infonce]\n"


def wait_for_workers(folder: Path) -> None:
    """Wait until the workers of a killed sweep, which run in its folder, have ended."""

    def works_there(process: Path) -> bool:
        with suppress(OSError):
            return (process / "cwd").readlink() == folder
        return False

    while any(map(works_there, Path("/proc").glob("[0-9]*"))):
        time.sleep(0.05)


def test_sweeps(undertaker: Lives, ram: Path, killed: Report) -> None:
    """Two sweeps share their cells; both and their workers are killed, again and again."""
    whole = ram / "whole"
    whole.mkdir()
    (whole / "cells.yaml").write_text(CELLS)
    alive = undertaker.seconds("sweep", str(whole), "", 0)
    expected, rng, kills, hits = contents(whole / "results/runs"), dice("sweeps"), 0, 0
    assert len(expected) == 60
    for round_ in count():
        folder = ram / str(round_)
        folder.mkdir()
        (folder / "cells.yaml").write_text(CELLS)
        while not enough("sweeps", kills, hits) and contents(folder / "results/runs") != expected:
            lives = [("sweep", str(folder), f"{rng.random()}", 0.04) for _ in range(2)]
            died = undertaker(*((*life, rng.uniform(0, 4 * alive)) for life in lives))
            wait_for_workers(folder)
            dead = list(folder.glob("dead-*"))
            kills += sum(code < 0 for code in died) + len(dead)
            hits += sum(path.name.endswith("-within") for path in dead)
            for path in dead:
                path.unlink()
            unfinished(folder, remove=True)
            assert contents(folder / "results/runs").items() <= expected.items()
        if enough("sweeps", kills, hits):
            break
    assert undertaker(("sweep", str(folder), "", 0, None)) == [0]
    assert contents(folder / "results/runs") == expected
    assert not list(folder.rglob("*.lock"))
    killed("two sweeps and their workers", kills, hits)
