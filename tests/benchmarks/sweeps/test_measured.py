"""`bench plan --measure`: one cell of each kind is asked, and the plan shows what that tells."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import measured, worker
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.measured import NOT_MEASURED, NOTE, ask, measure
from contrastbench.benchmarks.sweeps.process import Reply, Worker
from contrastbench.losses.spec import LossSpec

FILE = "seeds: 0-3\ndomains: {graph: {datasets: [motifs, DD]}}\nlosses: [none, infonce, hcl]\n"


def task(loss: str, dataset: str = "motifs", seed: int = 0, **recipe: Any) -> Task:
    return Task(Experiment("graph", dataset, LossSpec(loss), recipe), seed, "missing")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Let each kind take 10 s and 100 MiB for each epoch, but have no data of DD."""
    found: list[Task] = []

    def answer(task: Task, options: Options) -> Reply:
        found.append(task)
        if task.experiment.dataset == "DD":
            return {"status": "refused", "error": "DD is not there: bench data fetch DD"}
        epochs = task.experiment.full_recipe.epochs
        return {"status": "ok", "seconds": 10.0 * epochs, "peak_memory_mib": 100.0 * epochs}

    monkeypatch.setattr(measured, "ask", answer)
    return found


def test_one_cell_of_each_kind_is_asked(asked: list[Task]) -> None:
    cells = [task(loss, seed=seed) for loss in ("none", "infonce", "hcl") for seed in range(3)]
    cells += [task("hcl", lr=0.5), task("hcl", epochs=3), task("hcl", epochs=0)]
    found = measure(cells, Options())
    assert [one.experiment.full_recipe.epochs for one in asked] == [20, 3]
    assert found.forecast([task("hcl", seed=9)]) == ", measured about 3 min 20 s, 2000 MiB"
    assert found.forecast(cells[3:9] + cells[-2:-1]) == (
        ", measured about 20 min 30 s, 2000 MiB"
    ), "6 x 200 s + 30 s; the memory is that of the largest"
    assert found.forecast(cells[:4]) == (
        ", measured about 3 min 20 s, 2000 MiB, no training measured for 3"
    )
    assert found.forecast([]) == ""


def test_without_it_nothing_is_said() -> None:
    assert NOT_MEASURED.forecast([task("hcl")]) == ""
    assert list(NOT_MEASURED.lines()) == []


def test_the_plan_has_it_and_names_what_is_missing(
    bench, tmp_path: Path, asked: list[Task]
) -> None:
    (tmp_path / "my.yaml").write_text(FILE)
    code, said, _ = bench("plan", "my.yaml", "--measure")
    lines = [line.rstrip() for line in said.splitlines()]
    ahead = "0 done, 4 missing, no forecast, measured about 13 min 20 s, 2000 MiB"
    assert code == 1
    assert lines == [
        "graph motifs none     0 done, 4 missing, no forecast, no training measured for 4",
        "graph DD none         0 done, 4 missing, no forecast, no training measured for 4",
        f"graph motifs infonce  {ahead}",
        "graph DD infonce      0 done, 4 missing, no forecast, no training measured for 4",
        f"graph motifs hcl      {ahead}",
        "graph DD hcl          0 done, 4 missing, no forecast, no training measured for 4",
        "all                   0 done, 24 missing, no forecast, measured about 26 min 40 s, "
        "2000 MiB, no training measured for 16",
        "graph DD is not measured: DD is not there: bench data fetch DD",
        NOTE,
    ]
    assert len(asked) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["my.yaml"]
    code, said, _ = bench("plan", "my.yaml", "--measure", "--only", "dataset=motifs")
    assert (code, "not measured" in said) == (0, False)


def test_a_class_lists_the_command_of_its_jobs_without_it(
    bench, tmp_path: Path, asked: list[Task]
) -> None:
    (tmp_path / "my.yaml").write_text(FILE + "resources: {all: {hours: 1}}\n")
    _, said, _ = bench("plan", "my.yaml", "--measure", "--only", "dataset=motifs")
    assert "bench sweep my.yaml --only dataset=motifs --slurm print=true prints" in said


def test_a_worker_measures_a_cell_as_it_is_asked(tmp_path: Path) -> None:
    options = Options(tmp_path, device="cpu")
    one = task("infonce", epochs=2, limit=60, folds=3)
    sent = Worker.message(SimpleNamespace(options=options, work="measure"), one, wait=False)  # type: ignore[arg-type]
    reply = worker.answer_message(sent)
    assert (reply["status"], reply["steps"], reply["error"]) == ("ok", 2, None)
    missing = worker.answer_message(
        {**sent, "experiment": {**sent["experiment"], "dataset": "/nowhere"}}
    )
    assert missing["status"] == "refused"
    assert len(missing["error"].splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_process_of_its_own_is_asked(tmp_path: Path) -> None:
    one = task("infonce", epochs=2, limit=60, folds=3)
    reply = ask(one, Options(tmp_path, device="cpu"))
    assert (reply["status"], reply["steps"]) == ("ok", 2)
    assert not list(tmp_path.iterdir())
