"""`bench sweep --check only`: what would fail hours later fails in seconds, but once."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import opening, runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.check import distinct_tasks, too_much
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.sweeps.sweep import run_plan, scope
from contrastbench.domains.registry import declaration
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec

TINY = declaration("graph").tiny


def task(loss: str = "infonce", dataset: str = "motifs", seed: int = 0, **params: float) -> Task:
    return Task(Experiment("graph", dataset, LossSpec(loss, params), TINY), seed, "missing")


def test_each_dataset_and_each_loss_is_tried_once() -> None:
    losses = ("none", "infonce", "adnce")
    cells = [task(n, d, s) for d in ("motifs", "MUTAG", "DD") for n in losses for s in range(5)]
    cells += [task("adnce", mu=0.1 * k) for k in range(9)]
    tried = [(one.experiment.dataset, one.experiment.loss.name) for one in distinct_tasks(cells)]
    assert tried == [
        *(("motifs", name) for name in losses),
        ("MUTAG", "none"),
        ("DD", "none"),
    ]


def test_a_dataset_is_read_once_however_a_plan_turns() -> None:
    cells = [task(loss, data) for loss in ("none", "infonce", "dv") for data in ("MUTAG", "DD")]
    tried = [one.experiment.dataset for one in distinct_tasks(cells)]
    assert tried == ["MUTAG", "MUTAG", "MUTAG", "DD"]


def test_a_first_step_on_graphs_needs_no_scikit_learn() -> None:
    """Its import takes as long as torch's."""
    ask = "import sys, contrastbench.domains.graph.domain; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", ask]).returncode == 0


BROKEN = """
from contrastbench.losses import ScoreLoss

class Broken(ScoreLoss):
    def terms(self, scores):
        return 1 / 0

class Endless(ScoreLoss):
    def terms(self, scores):
        return scores.pos.mean(1) / 0
"""


@pytest.mark.parametrize(("name", "status"), [("Broken", "failed"), ("Endless", "diverged")])
def test_a_loss_that_fails_is_found_in_its_first_step(
    name: str, status: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    loss = LossSpec(f"{tmp_path / 'mine.py'}:{name}")
    outcome = runner.rehearse(
        Experiment("graph", "motifs", loss, TINY), 0, Options(tmp_path, device="cpu")
    )
    assert outcome["status"] == status
    assert not [path for path in tmp_path.rglob("*.json*") if path.is_file()]


def test_a_disk_without_room_for_checkpoints_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = files.shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"has 1 MiB free, a training here may take 33 MiB"):
        opening.check_room(tmp_path, torch.nn.Linear(1024, 1024, bias=False))


def test_a_rehearsal_takes_one_step_and_leaves_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nothing is trained or scored")

    monkeypatch.setattr(runner, "train", refuse)
    outcome = runner.rehearse(task().experiment, 0, Options(tmp_path, device="cpu"))
    assert outcome["status"] == "ok"
    assert outcome["seconds"] > 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_more_memory_than_there_is_is_said() -> None:
    assert too_much(1.0, 2) == ""
    assert too_much(1e9, 2).startswith(
        "2 processes of 1000000000 MiB need more than this machine has"
    )


FILE = "seeds: 0-3\ndomains: {graph: {datasets: [motifs, DD]}}\nlosses: [none, infonce]\n"


def test_a_check_names_what_fails_and_a_sweep_does_not_try_it(bench, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(FILE)
    words = ("my.yaml", "--tiny", "--device", "cpu", "--data-root", str(tmp_path))
    (tmp_path / "DD.zip").write_bytes(b"damaged")
    code, out, _ = bench("sweep", *words, "--check", "only")
    assert code == 1
    first, last = out.splitlines()
    assert first.startswith("graph DD none, seed 0: refused: ")
    assert "DD.zip" in first
    assert last.startswith("16 cells to run, 3 first steps tried in ")
    assert last.endswith("1 fail")
    assert not [path for path in tmp_path.rglob("*.json") if path.is_file()]


def test_what_a_check_refused_a_sweep_does_not_try(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(FILE)
    plan = make_plan(str(tmp_path / "my.yaml"), ["dataset=DD"], None, True, None, tmp_path)
    refused = {scope(task(dataset="DD").experiment, no_data=True): "no file DD.zip"}
    lines = list(run_plan(plan, Options(tmp_path, device="cpu"), refused=refused))
    assert lines == [
        ("graph DD none, seeds 0, 1, 2, 3: refused: no file DD.zip", True),
        ("graph DD infonce, seeds 0, 1, 2, 3: refused: no file DD.zip", True),
        ("8 cells: 0 done before, 0 now, 8 without a result", True),
    ]
