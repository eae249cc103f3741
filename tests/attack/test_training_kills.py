"""400 trainings are killed, 100 in each domain, a quarter by SIGTERM; no number changes.

Each life is a process of its own that trains by the public runner, writes a checkpoint after each
step and dies at a moment drawn over the whole run's length. The next one goes on, until the record
is there: it is that of a training that nobody killed, to the last bit.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trainees
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.running import checkpoints
from counts import dice, times
from forked import Lives, lives

KILLS = times(30, least=5)
TOOK = ("seconds_training", "seconds_evaluation")  # of a record's details


@pytest.fixture(scope="module")
def trainee() -> Iterator[Lives]:
    """Keep a process that forks trainings."""
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
    """Return the step of the latest checkpoint."""
    found = [checkpoints.read_checkpoint(path) for path in results.glob("checkpoints/[!.]*")]
    assert None not in found, "a torn checkpoint"
    return max((state["step"] for _, state in filter(None, found)), default=0)


def swept(results: Path) -> bool:
    """Whether a kill has left a file that was on its way; it is removed."""
    paths = [path for path in results.rglob(".*") if path.is_file()]
    for path in paths:
        path.unlink()
    return bool(paths)


def was_killed(status: int) -> bool:
    """Whether a life ended by a signal, or as SIGTERM asks for."""
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) in (0, 128 + signal.SIGTERM)
    return status != 0


@pytest.mark.parametrize("domain", trainees.RECIPES)
def test_killed_trainings(
    domain: str, trainee: Lives, ram: Path, found: Callable[[str], None]
) -> None:
    length = trainee.seconds("train", domain, str(ram / "whole"))
    expected, rng = outcome(ram / "whole"), dice(f"training {domain}")
    assert expected
    assert expected["status"] == "ok"
    trainings = kills = asked = hits = resumed = 0
    while kills < KILLS:
        results, reached, trainings = ram / str(trainings), 0, trainings + 1
        while outcome(results) is None:
            number = signal.SIGTERM if kills % 4 == 3 else signal.SIGKILL
            death = (rng.uniform(0, length), number) if kills < KILLS else None
            (status,) = trainee(("train", domain, str(results), death))
            kills += was_killed(status)
            asked += was_killed(status) and number == signal.SIGTERM
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


@pytest.mark.parametrize("where", ["step", "checkpoint"])
def test_a_kill_before_the_fourth_checkpoint_leaves_the_third(
    where: str, trainee: Lives, ram: Path
) -> None:
    whole, results = ram / "whole", ram / "killed"
    assert trainee(("train", "tabular", str(whole), None)) == [0]
    life = ("train_and_die", "tabular", str(results), where, 4)
    assert trainee((*life, None)) == [signal.SIGKILL]
    assert step(results) == 3
    assert swept(results) is (where == "checkpoint")
    assert outcome(results) is None
    assert trainee(("train", "tabular", str(results), None)) == [0]
    assert outcome(results) == outcome(whole)
    assert not list(results.glob("checkpoints/*"))
