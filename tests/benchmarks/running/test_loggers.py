"""Loggers of packages get the scalars of a training, and never end one."""

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

import stub_domain
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import loggers, runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

made: list["Kept"] = []


class Kept:
    """A logger that keeps what it gets."""

    fails = ""  # the method that raises

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name, self.settings, self.scalars, self.ends = name, settings, [], 0
        made.append(self)
        self.fail("init")

    def fail(self, where: str) -> None:
        if self.fails == where:
            raise ConnectionError("no route\nto the server")

    def log(self, name: str, value: float, step: int) -> None:
        self.fail("log")
        self.scalars.append((name, value, step))

    def close(self) -> None:
        self.ends += 1
        self.fail("close")


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with two loggers, of which one cannot be imported."""
    made.clear()
    monkeypatch.setattr(Kept, "fails", "")
    kept = EntryPoint("kept", "kept_logger:Kept", loggers.GROUP)
    broken = EntryPoint("broken", "no_such_module:Logger", loggers.GROUP)
    monkeypatch.setattr(loggers, "entry_points", lambda group: [kept, broken])
    module = ModuleType("kept_logger")
    module.Kept = Kept  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kept_logger", module)
    stub_domain.install(monkeypatch)


def trained(tmp_path: Path, **options: Any) -> tuple[Record, Path]:
    work = Experiment("graph", "motifs", LossSpec("infonce"), {"epochs": 1})
    return runner.run_cell(work, 0, Options(tmp_path, device="cpu", **options))


@pytest.mark.usefixtures("announced")
def test_a_logger_gets_each_step_and_what_was_trained(tmp_path: Path) -> None:
    record, path = trained(tmp_path, logger="kept")
    (one,) = made
    assert one.name == path.relative_to(tmp_path / "runs").with_suffix("").as_posix()
    assert (one.settings["loss"], one.settings["recipe"]["epochs"]) == ("infonce", 1)
    assert [(name, step) for name, _, step in one.scalars] == [("loss", 1), ("loss", 2)]
    mean = sum(value for _, value, _ in one.scalars) / 2
    assert record["details"]["loss_by_epoch"] == [pytest.approx(mean, rel=1e-6)]
    assert one.ends == 1


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("where", ["init", "log", "close"])
def test_a_logger_that_fails_costs_no_training(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    expected = trained(tmp_path / "without")[0]["metrics"]
    monkeypatch.setattr(Kept, "fails", where)
    record, _ = trained(tmp_path / "with", logger="kept")
    assert (record["status"], record["metrics"]) == ("ok", expected)
    said = "the logger kept failed (ConnectionError: no route): the training goes on without it\n"
    assert capsys.readouterr().err.count(said) == 1


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize("where", ["__init__", "add_scalar", "close"])
def test_a_disk_that_takes_no_tensorboard_file_costs_no_training(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensorboard.SummaryWriter, where, full)
    record, _ = trained(tmp_path, tensorboard=tmp_path / "board")
    assert record["status"] == "ok"
    said = "failed (OSError: [Errno 28] No space left on device): the training goes on without it\n"
    assert capsys.readouterr().err.count(said) == 1


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("keptt", "unknown logger 'keptt'.*kept"),
        ("broken", "cannot import the logger broken, no_such_module:Logger"),
    ],
)
def test_a_mistake_is_named_before_the_training(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        trained(tmp_path, logger=name)
    assert not list(tmp_path.rglob("*.json"))


def test_without_loggers_the_group_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"an entry point of the group contrastbench\.loggers"):
        loggers.check_loggers(None, "wandb")


PAGE = (Path(__file__).parents[3] / "docs" / "loggers.md").read_text()
SHOWN = dict(re.findall(r"```python\n# (\w+)_logger\.py\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize("library", ["wandb", "mlflow", "trackio"])
def test_the_classes_that_are_shown_take_scalars(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their libraries are not installed: a mock takes their calls."""
    monkeypatch.setitem(sys.modules, library, mock := MagicMock())
    names: dict[str, Any] = {}
    exec(SHOWN[library], names)
    settings = {"domain": "graph", "dataset": "MUTAG", "loss": "adnce", "seed": 0}
    one = names[library.title()]("graph/MUTAG/adnce/key-seed0", settings)
    one.log("loss", 1.5, 3)
    one.close()
    calls = str(mock.mock_calls)
    assert "graph/MUTAG/adnce/key-seed0" in calls
    assert "1.5" in calls
    assert "step=3" in calls
    lines = [line for line in SHOWN[library].splitlines() if line.strip()]
    assert len(lines) <= 11, "ten lines, and the import"


def test_the_project_that_is_shown_announces_the_class() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    project = tomllib.loads(text)["project"]
    assert project["entry-points"][loggers.GROUP] == {"wandb": "wandb_logger:Wandb"}
