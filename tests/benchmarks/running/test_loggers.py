"""What a training hands to loggers and to a user's functions, each logger by its own library."""

import sys
from pathlib import Path

import pytest
import torch

import contrastbench as cb
import stub_domain
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import scalars
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.losses.spec import LossSpec
from damaged import full_disk


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if "validation" not in request.node.name:
        stub_domain.install(monkeypatch)


def run(results: Path, **options: object) -> Record:
    work = Experiment("graph", "motifs", LossSpec("adnce"), {"epochs": 2})
    return run_cell(work, 0, Options(results, device="cpu", **options))[0]


def losses(results: Path) -> list[float]:
    """Return those of the steps of this training, without a logger."""
    seen: list[float] = []
    run(results, on_step=lambda _, values: seen.append(values["loss"]))
    return seen


def logged(results: Path, name: str) -> tuple[Path, str]:
    """Train with a logger, and return its folder and the name of the training."""
    pytest.importorskip(name, reason=f'pip install "[{name}]"')
    run(results, log=[name])
    (path,) = results.rglob("*-seed0.json")
    return results / "logs" / name, str(path.relative_to(results / "runs").with_suffix(""))


def test_csv_gets_the_losses(tmp_path: Path) -> None:
    folder, name = logged(tmp_path / "a", "csv")
    rows = (folder / f"{name}.csv").read_text().split()
    made = [f"loss,{value},{i + 1}" for i, value in enumerate(losses(tmp_path / "b"))]
    assert rows == ["name,value,step", *made]


def test_tensorboard_gets_the_losses(tmp_path: Path) -> None:
    folder, name = logged(tmp_path / "a", "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / name)).Reload().Scalars("loss")
    assert [event.step for event in events] == [1, 2, 3, 4]
    assert [event.value for event in events] == pytest.approx(losses(tmp_path / "b"), rel=1e-6)


@pytest.mark.filterwarnings("ignore")  # those of its libraries
def test_mlflow_gets_the_losses_and_parameters(tmp_path: Path) -> None:
    logged(tmp_path / "a", "mlflow")
    import mlflow

    (found,) = mlflow.search_runs(output_format="list")
    assert (found.info.status, found.data.params["loss"]) == ("FINISHED", "adnce")
    history = mlflow.MlflowClient().get_metric_history(found.info.run_id, "loss")
    assert [metric.value for metric in history] == losses(tmp_path / "b")
    mlflow.set_tracking_uri(None)


def test_wandb_gets_the_losses_offline(tmp_path: Path) -> None:
    (file,) = logged(tmp_path / "a", "wandb")[0].glob("wandb/offline-run-*/run-*.wandb")
    data = file.read_bytes()
    assert [str(value).encode() in data for value in losses(tmp_path / "b")] == [True] * 4


def test_functions_of_a_user_get_steps_and_epochs_and_change_no_number(tmp_path: Path) -> None:
    steps: list[int] = []
    epochs: list[object] = []
    hooks = {
        "on_step": lambda step, _: steps.append(step + int(torch.rand(1))),  # it draws
        "on_epoch": lambda *about: epochs.append(about),
    }
    record = run(tmp_path / "a", **hooks)
    assert record["metrics"] == run(tmp_path / "b")["metrics"]
    means = record["details"]["loss_by_epoch"]
    assert (steps, epochs) == ([1, 2, 3, 4], [(i + 1, {"loss": means[i]}) for i in range(2)])


def test_validation_scores_reach_a_function_of_a_user(tmp_path: Path) -> None:
    seen: list[tuple[int, dict[str, float]]] = []
    recipe = {"epochs": 1, "limit": 48, "batch_size": 16, "eval_every": 2, "pooler": "cls"}
    hook = lambda *about: seen.append(about)  # noqa: E731
    (record,) = cb.run("sentence", "infonce", recipe=recipe, results=tmp_path, on_step=hook)
    scores = [[step, values["validation"]] for step, values in seen if "validation" in values]
    assert scores == record["details"]["dev_curve"]
    assert [step for step, _ in scores] == [2, 3]


def test_a_function_of_a_user_that_raises_fails_the_training(tmp_path: Path) -> None:
    record = run(tmp_path, on_step=lambda *_: 1 / 0)
    assert (record["status"], "ZeroDivisionError" in record["details"]["error"]) == ("failed", True)


@pytest.mark.parametrize("where", ["begin", "write", "close"])
def test_a_logger_that_fails_after_it_began_costs_no_training(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = (full_disk if where == "write" else lambda *_: None), full_disk
    opener = full_disk if where == "begin" else lambda *_: logger
    monkeypatch.setitem(scalars.OPENERS, "csv", opener)
    record = run(tmp_path, log=["csv"])
    said = f"{record['details'].get('error')}{capsys.readouterr().err}"
    assert record["status"] == ("failed" if where == "begin" else "ok")
    assert said.count("--log csv") == said.count("No space left") == 1


@pytest.mark.parametrize("words", ["run --domain graph --loss infonce", "sweep smoke --tiny"])
@pytest.mark.parametrize(
    ("name", "fix"), [("wanbd", "mean 'wandb'"), ("wandb", 'install "contrastbench[wandb]"')]
)
def test_a_logger_that_is_not_there_is_refused_at_once(
    bench, words: str, name: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    code, _, err = bench(*words.split(), "--log", name)
    assert (code, fix in err) == (2, True)
