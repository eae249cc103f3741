"""Trainings are killed, and go on to the bit; launchers of two ranks leave no process behind.

Of 400 that are killed, 100 in each domain, a quarter is by SIGTERM. Each life is a process of its
own that trains by the public runner, writes a checkpoint after each step and dies at a moment drawn
over the whole run's length. The next one goes on, until the record is there: it is that of a
training that nobody killed. In every fifth launch the second rank never comes.

Besides, every checkpoint of a whole training is kept. From each one the next step must lead to the
next one's state, weights, moments, losses and scores, which is the whole chain; from each tenth the
training goes on to its end, where model, history and scores are those of the whole one. So in each
domain, in what only some trainings have, with losses that learn, count and draw, and in two
processes that share their batches.
"""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import launches
import trainees
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.running import checkpoints
from counts import dice, times
from forked import Lives, lives
from processes import in_processes
from resumed import CASES, everywhere

KILLS = times(30, least=5)
MOST = KILLS + 100  # a busy machine kills more of them early
TOOK = ("seconds_training", "seconds_evaluation")  # of a record's details


@pytest.fixture(scope="module")
def trainee() -> Iterator[Lives]:
    with lives(trainees) as living:
        yield living


def outcome(results: Path) -> dict[str, Any] | None:
    """The record, but for what it took; None where there is none."""
    paths = list(results.glob("runs/*/*/*/[!.]*"))
    if not paths:
        return None
    (path,) = paths
    record = store.read_record(path)
    details = {name: value for name, value in record["details"].items() if name not in TOOK}
    identity = {name: record[name] for name in (*store.IDENTITY, "seed", "status", "main")}
    return {"name": path.name, **identity, "metrics": record["metrics"], "details": details}


def step(results: Path) -> int:
    found = [checkpoints.read_checkpoint(path) for path in results.glob("checkpoints/[!.]*")]
    assert None not in found, "a torn checkpoint"
    return max((state["step"] for _, state in filter(None, found)), default=0)


def swept(results: Path) -> bool:
    """Whether a kill has left a file that was on its way; it is removed."""
    paths = [path for path in results.rglob(".*") if path.is_file()]
    for path in paths:
        path.unlink()
    return bool(paths)


def was_killed(code: int) -> bool:
    assert code < 0 or code in (0, 128 + signal.SIGTERM)
    return code != 0


@pytest.mark.parametrize("domain", trainees.RECIPES)
def test_killed_trainings(
    domain: str, trainee: Lives, ram: Path, found: Callable[[str], None]
) -> None:
    length = trainee.seconds("train", domain, str(ram / "whole"))
    expected, rng = outcome(ram / "whole"), dice(f"training {domain}")
    assert expected
    assert expected["status"] == "ok"
    trainings = kills = asked = hits = resumed = 0

    def wanted() -> bool:
        """Further kills, if what else the machine does let too few lives get to a checkpoint."""
        return kills < KILLS or (resumed < KILLS // 4 and kills < MOST)

    while wanted():
        results, reached, trainings = ram / str(trainings), 0, trainings + 1
        while outcome(results) is None:
            number = signal.SIGTERM if kills % 4 == 3 else signal.SIGKILL
            death = (rng.uniform(0, length), number) if wanted() else None
            (code,) = trainee(("train", domain, str(results), death))
            kills += was_killed(code)
            asked += was_killed(code) and number == signal.SIGTERM
            hits += swept(results)
            resumed += reached > 0
            before, reached = reached, step(results)
            assert outcome(results) or reached >= before, "a step that was done is lost"
        assert outcome(results) == expected
    assert asked >= KILLS // 5
    assert resumed >= KILLS // 4, "trainings that begin anew show nothing"
    found(
        f"training: {kills} kills of {trainings} trainings of {domain}, {asked} by SIGTERM, "
        f"{hits} within a write, {resumed} lives went on from a checkpoint: the same record"
    )


LAUNCHES = times(50)
PATIENCE = 50  # seconds for processes to end, less than a rank has to finish a step


@pytest.fixture(scope="module")
def launcher() -> Iterator[Lives]:
    with lives(launches) as living:
        yield living


@contextmanager
def all_ended(folder: Path) -> Iterator[str]:
    """A pipe whose end is that of all processes that held it."""
    folder.mkdir()
    pipe, pids = folder / "alive", folder / "alive.pids"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    own = os.open(pipe, os.O_WRONLY)  # a pipe that nobody has opened has no end
    try:
        yield str(pipe)
        os.close(own)
        ended, _, _ = select.select([end], [], [], PATIENCE)
        left = [] if ended else [int(pid) for pid in pids.read_text().split()]
    finally:
        os.close(end)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, "processes stay behind"


def test_no_rank_outlives_its_launcher(
    launcher: Lives, ram: Path, found: Callable[[str], None]
) -> None:
    rng, killed, kill = dice("launches"), 0, 0
    with all_ended(ram / "whole") as pipe:
        length = launcher.seconds("train", str(ram / "whole" / "results"), pipe)
    assert len(list((ram / "whole").rglob("*seed0.json"))) == 1
    while kill < LAUNCHES or (killed < LAUNCHES // 2 and kill < 2 * LAUNCHES):
        kill += 1
        with all_ended(ram / str(kill)) as pipe:
            late, death = kill % 5 == 0, rng.uniform(0, length)
            results = str(ram / str(kill) / "results")
            (code,) = launcher(("train", results, pipe, late, death))
            killed += code < 0
    assert killed >= LAUNCHES // 2
    found(f"launches: {killed} launchers of two ranks killed: no process is left")


def test_a_rank_waits_for_another_for_some_time_only(launcher: Lives, ram: Path) -> None:
    with all_ended(ram / "late") as pipe:
        (code,) = launcher(("hurry", str(ram / "results"), pipe, None))
    assert code == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ranks_that_wait_for_each_other_hear_a_signal(
    number: int, launcher: Lives, ram: Path
) -> None:
    with all_ended(ram / "late") as pipe:
        (code,) = launcher(("train", str(ram / "results"), pipe, True, (1.0, number)))
    assert code in (128 + number, -number)


STEPS, ENDS = times(60, least=4), times(10, least=1)


@pytest.mark.parametrize("case", CASES)
def test_resumed_at_every_step(case: str, ram: Path, found: Callable[[str], None]) -> None:
    steps = times(20, least=3) if case.startswith("image, ") else STEPS
    assert everywhere(case, ram, steps, ENDS) == []
    found(f"training: {case} resumed at {steps} steps: bit-equal")


def test_two_processes_are_resumed_at_every_step(
    ram: Path, tmp_path: Path, found: Callable[[str], None]
) -> None:
    wrong = in_processes(2, everywhere, tmp_path / "two", "tabular", ram, STEPS, ENDS)
    assert wrong == [[], []]
    found(f"training: tabular in two processes resumed at {STEPS} steps: bit-equal")
