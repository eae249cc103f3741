"""SIGKILL at any moment, of whatever writes records and pages: nothing lost, doubled or torn."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from forked import Lives, lives
from made_records import made

import victims
from campaign import dice, times
from contrastbench.benchmarks.records import reading, store

pytest.importorskip("matplotlib")
SEEDS = list(range(len(victims.RECORDS)))
FINE = "0 lost, doubled, corrupt"


@pytest.fixture(scope="module")
def undertaker() -> Iterator[Lives]:
    """Lets victims live side by side, each with its moment of death; returns how they ended."""
    with lives(victims) as living:
        yield living


def unfinished(folder: Path) -> bool:
    """Whether a kill has left an unfinished file; it is removed."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name.startswith(".")]
    for path in paths:
        path.unlink()
    return bool(paths)


def contents(folder: Path) -> dict[str, bytes]:
    """The finished files by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def outcome(what: str, kills: int, hits: int) -> str:
    """A line of the summary; kills that hit no write show nothing."""
    assert hits >= kills / 20, f"only {hits} of {kills} kills hit a write: this attacks nothing"
    share = 100 * hits / kills
    return f"store: {kills} kills of {what}, {share:.0f} % within a write: {FINE}"


def test_publish(undertaker: Lives, ram: Path, found: Callable[[str], None]) -> None:
    """Two processes publish the same records in opposite order, and are killed."""
    whole, log = ram / "whole", ram / "log"
    alive = undertaker.seconds("publish", str(whole), str(ram / "alive"), SEEDS)
    expected, rng, kills, hits = contents(whole), dice("publish"), 0, 0
    for round_ in range(times(430)):
        results = ram / str(round_)
        log.write_text("")  # both may be dead before they write
        orders = (SEEDS, SEEDS[::-1])
        died = undertaker(
            *(("publish", str(results), str(log), o, rng.uniform(0, alive)) for o in orders)
        )
        kills += sum(status == signal.SIGKILL for status in died)
        hits += unfinished(results)
        there = contents(results)
        assert there.items() <= expected.items()
        said = {int(line) for line in log.read_text().split()}
        assert said <= {store.read(results / name)["seed"] for name in there}
    found(outcome("two that publish", kills, hits))


def test_merge(undertaker: Lives, ram: Path, found: Callable[[str], None]) -> None:
    """Two merges into one folder; what they leave, the next one completes."""
    source = ram / "source"
    for record in victims.RECORDS:
        store.publish(record, store.path(source, record))
    alive = undertaker.seconds("unite", str(source), str(ram / "whole"))
    expected, rng, kills, hits = contents(source), dice("merge"), 0, 0
    assert contents(ram / "whole") == expected
    for round_ in range(times(100)):
        results = ram / str(round_)
        life = ("unite", str(source), str(results))
        died = undertaker(*((*life, rng.uniform(0, alive)) for _ in range(2)))
        kills += sum(status == signal.SIGKILL for status in died)
        hits += unfinished(results)
        assert contents(results).items() <= expected.items()
        if round_ % 10 == 0:
            assert undertaker((*life, None)) == [0]
            assert contents(results) == expected
    found(outcome("two that merge", kills, hits))


def test_pack(undertaker: Lives, ram: Path, found: Callable[[str], None]) -> None:
    """Two packs of one folder: each record is in a file or a pack at any moment."""
    source = ram / "source"
    for record in victims.RECORDS:
        store.publish(record, store.path(source, record))
    whole = ram / "whole"
    shutil.copytree(source, whole)
    alive = undertaker.seconds("pack", str(whole))
    expected, rng, kills, hits = records(source), dice("pack"), 0, 0
    assert records(whole) == expected
    for round_ in range(times(60)):
        results = Path(shutil.copytree(source, ram / str(round_)))
        life = ("pack", str(results))
        died = undertaker(*((*life, rng.uniform(0, alive)) for _ in range(2)))
        kills += sum(status == signal.SIGKILL for status in died)
        hits += unfinished(results)
        assert records(results) == expected
        if round_ % 10 == 0:
            assert undertaker((*life, None)) == [0]
            assert records(results) == expected
            assert len(contents(results)) == 1, "one pack"
        shutil.rmtree(results)
    found(outcome("two that pack", kills, hits))


def records(results: Path) -> dict[str, store.Record]:
    """What is read of files and packs."""
    found = reading.everything(results)
    return {path.relative_to(results).as_posix(): record for path, record in found}


def rendered(
    undertaker: Lives,
    folder: Path,
    life: tuple[str, ...],
    kills: int,
    found: Callable[[str], None],
) -> None:
    """Pages are of the old or of the new records at any moment, each of them whole."""
    states, rng, died, hits = [], dice(life[0]), 0, 0
    for seed in range(2):
        made(folder, victims.WORK, seed)
        alive = undertaker.seconds(*life)
        states.append(contents(folder))
    pages = [name for name in states[1] if not name.startswith("runs/")]
    for _ in range(kills):
        ended = undertaker((*life, rng.uniform(0, alive)))
        died += ended == [signal.SIGKILL]
        hits += unfinished(folder)
        there = contents(folder)
        assert all(there[name] in (states[0][name], states[1][name]) for name in pages)
    assert hits >= died / 20, f"only {hits} of {died} kills hit a write: this attacks nothing"
    what = life[0].replace("_", " ")
    found(f"store: {died} kills of {what}, {hits} within a write: every page is whole")


def test_tables(undertaker: Lives, ram: Path, found: Callable[[str], None]) -> None:
    rendered(undertaker, ram, ("tables", str(ram)), times(20), found)


def test_report(undertaker: Lives, ram: Path, found: Callable[[str], None]) -> None:
    life = ("one_page", str(ram), str(ram / "report.html"))
    rendered(undertaker, ram, life, times(30), found)


CELLS = "seeds: 0-2\ndomains: {graph: {}}\nlosses: [infonce, none]\n"
SWEEP = (
    *(sys.executable, "-P", "-c", "from contrastbench.benchmarks.cli.main import main; main()"),
    *("sweep", "cells.yaml", "--tiny", "--device", "cpu", "--no-check"),
)


def sweep(folder: Path, kill: Callable[[], tuple[float, bool]] | None, orphans: set[int]) -> bool:
    """Run a sweep, or kill it or its worker at some moment; whether that was before its end."""
    with subprocess.Popen(
        SWEEP, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        after, worker = kill() if kill else (None, False)
        try:
            return process.wait(after) != 0
        except subprocess.TimeoutExpired:
            orphans |= set(children(process.pid))
            pids = children(process.pid) if worker else [process.pid]
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return bool(pids)


def children(pid: int) -> list[int]:
    """Its workers; each is the child of the thread that has started it."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    with suppress(OSError):
        return [int(word) for path in lists for word in path.read_text().split()]
    return []


def wait_for(orphans: set[int]) -> None:
    """Workers of a killed sweep end by themselves."""
    while any(Path(f"/proc/{pid}").exists() for pid in orphans):
        time.sleep(0.05)


def numbers(results: Path) -> dict[str, object]:
    """What records say, but for what it took; failed tries of killed workers say nothing."""
    records = {path.name: store.read(path) for path in results.glob("runs/*/*/*/*.json")}
    return {
        name: (record["metrics"], record["details"].get("loss_by_epoch"), record["seed"])
        for name, record in records.items()
    }


def test_sweeps(ram: Path, found: Callable[[str], None]) -> None:
    """Two sweeps share their cells, and they or their workers are killed, again and again."""
    (ram / "whole").mkdir()
    (ram / "whole/cells.yaml").write_text(CELLS)
    start = time.perf_counter()
    assert not sweep(ram / "whole", None, set())
    span, rng, kills, hits = time.perf_counter() - start, dice("sweeps"), 0, 0
    expected = numbers(ram / "whole/results")
    assert len(expected) == 6
    for round_ in range(times(3)):
        folder, orphans = ram / str(round_ // 3), set[int]()
        folder.mkdir(exist_ok=True)
        (folder / "cells.yaml").write_text(CELLS)
        seen = contents(folder / "results/runs")
        moments = [(rng.uniform(0, span), rng.random() < 0.5) for _ in range(2)]
        with ThreadPoolExecutor() as pool:
            kills += sum(pool.map(lambda m, f=folder, o=orphans: sweep(f, lambda: m, o), moments))
        wait_for(orphans)
        assert contents(folder / "results/runs").items() >= seen.items()
        assert numbers(folder / "results").items() <= expected.items()
        hits += unfinished(folder)
    for folder in (path for path in ram.iterdir() if path.name != "whole"):
        assert not sweep(folder, None, set())
        assert numbers(folder / "results") == expected
        assert not list(folder.rglob("*.lock"))
    found(f"store: {kills} kills of two sweeps and their workers, {hits} within a write: {FINE}")
