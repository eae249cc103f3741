"""Several processes train as one does, end as one does, and go on in any number."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ending
from contrastbench.benchmarks.cli.options import parse_pairs
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import checkpoints, launch, ranks
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.losses import LossSpec, UserError
from processes import in_processes
from shared_trainings import CASES, trainings
from warm import python

RECIPE = ["epochs=2", "limit=42", "batch_size=14", "folds=3", "optimizer=sgd", "lr=1e-6"]


@pytest.mark.parametrize(
    ("world", "cases"), [(2, list(CASES)), (4, ["graphs", "a table, momentum"])]
)
def test_every_domain_trains_as_one_process_does(
    world: int, cases: list[str], tmp_path: Path
) -> None:
    whole, wrong = trainings(*cases), []
    for found in in_processes(world, trainings, tmp_path / "work", *cases):
        for case, expected in whole.items():
            for kind, tolerance in (("scores", 1e-10), ("weights", 1e-8)):
                for key, value in expected[kind].items():
                    a, b = (
                        torch.as_tensor(x, dtype=torch.float64)
                        for x in (found[case][kind][key], value)
                    )
                    if not torch.allclose(a, b, rtol=tolerance, atol=tolerance):
                        wrong.append((case, key, (a - b).abs().max().item()))
    assert wrong == []


def command(results: Path, *options: str) -> list[str]:
    """Return the words of a cell of six steps, whose loss may end it."""
    recipe = [word for pair in RECIPE for word in ("--recipe", pair)]
    words = ["--domain", "graph", "--dataset", "motifs", "--loss", f"{ending.__file__}:Ending"]
    words += ["--device", "cpu", *recipe, "--results", str(results)]
    return ["-m", "contrastbench", "run", *words, *options]


def ended(how: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ENDING": how, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": python()}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment)


def in_one(results: Path) -> dict[str, Any]:
    """The record of one process, this one; it goes on from a checkpoint."""
    recipe = parse_pairs("--recipe", RECIPE)
    loss = LossSpec(f"{ending.__file__}:Ending")
    return run_cell(Experiment("graph", "motifs", loss, recipe), 0, Options(results, device="cpu"))[
        0
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return in_one(tmp_path_factory.mktemp("alone"))


TERMINATED = "terminated: what is finished is kept, the same command goes on"


@pytest.mark.parametrize(
    ("how", "code", "kept", "said", "then"),
    [
        ("1 4 kill", 1, 3, "bench: process 1 of 2 ended (SIGKILL), and all with it: the same", 1),
        ("1 4 error", 1, 3, "process 1 of 2 ended (RuntimeError: out of luck), and all with it", 1),
        ("0 4 parent", 143, 4, TERMINATED, 1),
        ("1 4 term", 143, 4, TERMINATED, 3),
    ],
)
def test_what_ends_one_ends_all_and_any_number_goes_on(
    how: str,
    code: int,
    kept: int,
    said: str,
    then: int,
    tmp_path: Path,
    alone: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cold = "parent" in how  # the parent of a warm process is not the one that started it
    start = sys.executable if cold else python()
    done = ended(how, start, *command(tmp_path, "--devices", "2"))
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert said in done.stderr
    (checkpoint,) = tmp_path.rglob("*.safetensors")
    found = checkpoints.read_checkpoint(checkpoint)
    assert found is not None
    assert found[1]["step"] == kept
    assert not list(tmp_path.rglob("*.json"))
    if then > 1:
        done = ended("- - -", python(), *command(tmp_path, "--devices", str(then)))
    resumed = in_one(tmp_path)
    words = done.stderr if then > 1 else capsys.readouterr().err
    assert f"goes on from step {kept} with another" in words
    assert_alike(resumed, alone)
    before, after = resumed["details"]["stretches"]
    assert [before["from"], before["to"], len(before["devices"])] == [0, kept, 2]
    assert len(after.get("devices", ["one"])) == then


def test_torchrun_starts_them_too(tmp_path: Path, alone: dict[str, Any]) -> None:
    """The first cell is finished, the second is ended in its fourth step."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    cells = command(tmp_path, "--seeds", "0,1")
    done = ended("1 10 term", *torchrun, "--nproc-per-node=2", *cells)
    assert done.returncode != 0
    assert len(done.stdout.splitlines()) == 1, "one record, one line"
    assert [
        checkpoints.read_checkpoint(path)[1]["step"] for path in tmp_path.rglob("*.safetensors")
    ] == [4]
    whole = in_one(tmp_path)  # reads it
    assert_alike(whole, alone)
    assert whole["environment"]["devices"] == [alone["environment"]["device"]] * 2


def assert_alike(found: dict[str, Any], alone: dict[str, Any]) -> None:
    """The same cell, and numbers that differ by rounding in float32."""
    assert found["status"] == "ok"
    assert found["key"] == alone["key"]
    losses = alone["details"]["loss_by_epoch"]
    assert found["details"]["loss_by_epoch"] == pytest.approx(losses, rel=1e-3)


def test_a_device_for_each_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(UserError, match=r"4 processes and --device cuda:1: give cpu or cuda"):
        ranks.check_rank_devices("cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UserError, match=r"4 processes and 2 CUDA devices: each needs one"):
        ranks.check_rank_devices("cuda")
    ranks.check_rank_devices("cpu")


@pytest.mark.parametrize("port", [None, "x", "99999"])
def test_ranks_without_a_place_to_meet_are_one_line(
    monkeypatch: pytest.MonkeyPatch, port: str | None
) -> None:
    about = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in about.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="let torchrun start the ranks, or unset WORLD_SIZE"):
        ranks.store()


def test_signals_are_heard_again_after_a_meeting() -> None:
    heard = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, lambda number, _: heard.append(number))
        with ranks.ended_by_signals():
            assert {signal.getsignal(number) for number in before} == {signal.SIG_DFL}
        for number in before:
            signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert heard == [*before]


def test_a_rank_whose_launcher_is_gone_has_a_minute_for_its_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard, alarms = [], list[int]()
    monkeypatch.setattr(signal, "alarm", alarms.append)
    monkeypatch.setattr(os, "read", lambda *_: b"")  # the launcher's end of the pipe is closed
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        ranks.end_with_input(0)
        ranks.end_with_parent(os.getppid() + 1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (heard, alarms) == ([signal.SIGTERM] * 2, [60, 60])


def test_each_rank_has_a_card_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[Any]()
    monkeypatch.setattr(subprocess, "Popen", lambda _, **given: told.append(given))
    for rank in (0, 1):
        launch.start_rank(rank, 2, tmp_path, launch.Job(["x"], sys.stdout, card=3))
    cards = [[one["env"][name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")] for one in told]
    assert cards == [["0", "3", "2"], ["1", "4", "2"]]
    assert all(one["start_new_session"] for one in told)  # Ctrl-C stops them after one step
