"""Cells of a sweep over several devices: the records of one process, whatever ends a rank."""

import json
import socket
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

import ending
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import checkpoints, launch, training
from contrastbench.benchmarks.running.launch import Ending
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission.reproduction import Outcome, Spread
from contrastbench.benchmarks.sweeps import process, sweep
from contrastbench.benchmarks.sweeps.plan import Task
from contrastbench.benchmarks.sweeps.sweep import Failure, Sweep
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec
from warm import python

SIZES = {"epochs": 2, "limit": 42, "batch_size": 14, "folds": 3}  # six steps
RECIPE = {**SIZES, "optimizer": "sgd", "lr": 1e-6}  # Adam makes much of rounding
LOSS = f"{Path(ending.__file__).with_name('widened.py')}:Widened"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo afterwards what the loss's file changes wherever it is read."""
    for owner, name in (
        (GraphDomain, "model"),
        (GraphDomain, "evaluate"),
        (training, "SECONDS_BETWEEN_CHECKPOINTS"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))


@pytest.fixture
def warm_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start ranks, and who starts them, from a warm Python."""
    monkeypatch.setattr(sys, "executable", python())


def tasks(seeds: int = 1) -> list[Task]:
    experiment = Experiment("graph", "motifs", LossSpec(LOSS), RECIPE)
    return [Task(experiment, seed, "missing") for seed in range(seeds)]


def swept(results: Path, devices: int, jobs: int = 1, seeds: int = 1) -> list[Failure]:
    options = Options(results, device="cpu", devices=devices)
    with closing(Sweep(options, jobs)) as sweep:
        return sweep.run(tasks(seeds))


def record(results: Path, seed: int = 0) -> dict[str, Any]:
    return tasks()[0].experiment.ok_by_seed(results)[seed]


def assert_alike(found: dict[str, Any], alone: dict[str, Any], devices: int) -> None:
    for one in Outcome(alone, found, Spread({}, 0)).values:
        assert one.again == pytest.approx(one.recorded, rel=1e-10), one.name
    assert len(found["environment"]["devices"]) == devices


@pytest.mark.slow
@pytest.mark.usefixtures("warm_ranks")
def test_ranks_leave_the_records_of_one_process(tmp_path: Path) -> None:
    for devices in (1, 2):
        assert swept(tmp_path / str(devices), devices, jobs=devices, seeds=2) == []
    for seed in (0, 1):
        assert_alike(record(tmp_path / "2", seed), record(tmp_path / "1", seed), devices=2)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_ranks")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("1 4 kill", "process 1 of 2 ended (SIGKILL), and all with it: the same command goes on"),
        ("0 4 error", "RuntimeError('out of luck')"),
    ],
)
def test_a_rank_that_ends_fails_its_cell_and_any_number_goes_on(
    how: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next cell has new ranks, which count their own steps, and ends in the same way."""
    monkeypatch.setenv("ENDING", how)
    failures = swept(tmp_path / "ended", 2, seeds=2)
    assert [failure.task.seed for failure in failures] == [0, 1]
    for failure in failures:
        assert failure.reason.startswith(f"failed: {reason}")
    found = [
        checkpoints.read_checkpoint(path) for path in (tmp_path / "ended").rglob("*.safetensors")
    ]
    assert [one[1]["step"] for one in found if one] == [3, 3]
    monkeypatch.delenv("ENDING")
    assert swept(tmp_path / "ended", 4) == []
    assert swept(tmp_path / "alone", 1) == []
    resumed = record(tmp_path / "ended")
    assert_alike(resumed, record(tmp_path / "alone"), 4)
    assert [len(one["devices"]) for one in resumed["details"]["stretches"]] == [2, 4]


TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1")
SWEEP = f"""
seeds: 0
losses: ["{LOSS}"]
domains: {{graph: {{datasets: [motifs], recipe: {json.dumps(RECIPE)}}}}}
"""


def nodes(*words: str) -> None:
    """Run two agents of torchrun with their words, each as on a node of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    meeting = [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-backend=c10d", "--rdzv-id=nodes"]
    agents = [
        subprocess.Popen(
            [*TORCHRUN, *meeting, f"--rdzv-conf=is_host={first}", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for first in ("true", "false")
    ]
    said = [agent.communicate()[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    return said


@pytest.mark.slow
@pytest.mark.usefixtures("warm_ranks")
def test_nodes_of_torchrun_share_a_cell_and_start_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank is killed in its fourth step; torchrun starts all again, who need three more."""
    assert swept(tmp_path / "alone", 1) == []
    (tmp_path / "my.yaml").write_text(SWEEP)
    monkeypatch.setenv("ENDING", "1 4 kill")
    monkeypatch.setenv("PYTHON_EXEC", python())  # torchrun's ranks start warm too
    command = ["-m", "contrastbench", "sweep", str(tmp_path / "my.yaml"), "--device=cpu"]
    nodes("--max-restarts=1", *command, "--results", str(tmp_path / "nodes"))
    found = record(tmp_path / "nodes")
    assert_alike(found, record(tmp_path / "alone"), 2)


@pytest.mark.parametrize(
    ("rank", "count", "message"),
    [
        ("1", "2", "torchrun's processes share one cell at a time: leave out --jobs"),
        ("1", "x", "WORLD_SIZE=x is no number: unset it, or let torchrun set it"),
        ("1", "٢", "WORLD_SIZE=٢ is no number: unset it"),
        ("1", 5000 * "9", "is no number: unset it, or let torchrun set it"),
        ("2", "2", "RANK=2 is none of WORLD_SIZE=2: let torchrun set both"),
    ],
)
def test_torchrun_says_how_many_ranks_there_are(
    bench, monkeypatch: pytest.MonkeyPatch, rank: str, count: str, message: str
) -> None:
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, rank)
    monkeypatch.setenv("WORLD_SIZE", count)
    monkeypatch.setattr(launch, "ended_at_once", nullcontext)  # that is for a whole process
    code, said, complaint = bench("sweep", "smoke", "--tiny", "--jobs", "2")
    assert (code, said, complaint.count("\n")) == (2, "", 1)
    assert message in complaint


STUB = """
import json, sys
print(json.dumps({"status": "ready"}), flush=True)
for line in sys.stdin:
    reply = {"status": "failed", "error": "no", "last": True}
    print(json.dumps(reply if '"seed": 1' in line else reply | DONE), flush=True)
    if '"seed": 1' in line:
        break
"""


def test_ranks_of_torchrun_are_one_worker_for_all_rounds_and_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = {"status": "ok", "error": None, "seconds": 1.0, "last": False}
    code = STUB.replace("DONE", repr(done))
    monkeypatch.setattr(process, "COMMAND", [sys.executable, "-c", code])
    for module in (process, sweep):
        monkeypatch.setattr(module, "launched", lambda: True)
    with closing(Sweep(Options(tmp_path, device="cpu"), 1)) as torchruns:
        for seed in (0, 2):
            assert torchruns.run([tasks(3)[seed]]) == []
        with pytest.raises(UserError, match="the ranks have ended with the last cell: the same"):
            torchruns.run(tasks(3)[1:])
    assert "seed 1: failed: no" in capsys.readouterr().err


def test_a_rank_in_need_of_memory_is_a_cell_that_ran_out() -> None:
    for how, lacks in (
        ("SIGKILL", True),
        ("torch.OutOfMemoryError: CUDA out of memory", True),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", True),
        ("RuntimeError: out of luck", False),
    ):
        assert Ending(1, f"process 1 of 2 ended ({how})").in_need_of_memory == lacks
    assert process.ran_out({"status": "failed", "code": process.NO_MEMORY})
    assert not process.ran_out({"status": "failed", "code": process.LOST})


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"cuda:{i}" for i in range(5))
    monkeypatch.setattr(process, "cuda_devices", lambda: names)


@pytest.mark.usefixtures("cards")
def test_workers_of_ranks_have_the_cards_from_their_first_one_on() -> None:
    assert process.slots("auto", 3, devices=2) == ["cuda:0", "cuda:2", "cuda:0"]
    assert process.slots("cuda", 1, per_device=True, devices=2) == ["cuda:0", "cuda:2"]
    assert process.slots("auto", 2, devices=5) == ["cuda:0", "cuda:0"]
    assert process.slots("cpu", 2, devices=2) == ["cpu", "cpu"]
    process.check_devices("cuda", 5)
    process.check_devices("cpu", 8)
    process.check_devices("cuda:1", 1)


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--device", "cuda:1"], "--devices 6 and --device cuda:1: give cpu or cuda, each has one"),
        (
            [],
            "--devices 6 and 5 CUDA devices: each needs one, give fewer --devices or --device cpu",
        ),
    ],
)
def test_too_few_cards_are_one_line(bench, words: list[str], complaint: str) -> None:
    code, said, found = bench("sweep", "smoke", "--tiny", "--devices", "6", *words)
    assert (code, said, found) == (2, "", f"bench: {complaint}\n")
