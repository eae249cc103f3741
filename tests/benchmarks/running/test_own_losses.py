"""What a user's loss may do in a training, and how a mistake of it is named."""

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import contrastbench as cb
import stub_domain
from contrastbench.benchmarks.running import ranks
from contrastbench.domains.base import Evaluation
from contrastbench.losses import UserError
from contrastbench.losses.settings import SETTINGS

LOSSES = """
import random

import numpy as np
import torch
from contrastbench.losses.library.infonce import InfoNCE


class Draws(InfoNCE):
    def combine(self, terms):
        drawn = random.random() + np.random.rand()
        return (terms * torch.rand_like(terms)).mean() * drawn


class Weighed(InfoNCE):
    weight = 1

    def combine(self, terms):
        return terms.mean() * self.weight


class LastWeights(InfoNCE):
    steps = 0

    def combine(self, terms):
        self.steps += 1
        zero = (terms * (self.steps < 2)).square().sum()
        return terms.mean() + zero.sqrt()


class Changes(InfoNCE):
    def __init__(self, call: str = "", here: bool = False) -> None:
        super().__init__()
        self.call, self.here = call, here
        if here:
            self.change()

    def combine(self, terms):
        if not self.here:
            self.change()
        return terms.mean()

    def change(self):
        torch.set_default_dtype(torch.float64)
"""
CHANGES = {
    "os.chdir": "import os, tempfile; os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd())",
    "torch.distributed.init_process_group": (
        "torch.distributed.init_process_group('gloo', store=torch.distributed.HashStore(), "
        "rank=0, world_size=1)"
    ),
    "torch.set_default_dtype": "torch.set_default_dtype(torch.float64)",
    "torch.set_default_device": "torch.set_default_device('meta')",
    "torch.set_grad_enabled": "torch.set_grad_enabled(False)",
    "torch.use_deterministic_algorithms": "torch.use_deterministic_algorithms(True)",
    "torch.set_num_threads": "torch.set_num_threads(3)",
    "torch.set_float32_matmul_precision": "torch.set_float32_matmul_precision('medium')",
    "torch.set_anomaly_enabled": "torch.autograd.set_detect_anomaly(True)",
}


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stub_domain.install(monkeypatch)
    before = [read() for read, _ in SETTINGS.values()]
    yield
    now = [read() for read, _ in SETTINGS.values()]
    for (_, write), value in zip(SETTINGS.values(), before, strict=True):
        write(value)
    assert now == before


def loss(folder: Path, name: str) -> str:
    (folder / "mine.py").write_text(LOSSES)
    return f"{folder}/mine.py:{name}"


VALUED = """
from contrastbench.losses.library.infonce import InfoNCE

class Valued(InfoNCE):
    def forward(self, contrast):
        value = super().forward(contrast)
        return {}
"""
RETURN = "return one number, such as .mean()"
COMPUTE = "compute it from the scores as tensors, without .item"


@pytest.mark.parametrize(
    ("value", "more", "message"),
    [
        ("3", "", "mine returns int: return a tensor"),
        ("None", "", "mine returns NoneType: return a tensor"),
        ("value.expand(4)", "", f"mine returns shape (4,): {RETURN}"),
        ("value.expand(4)", " + 0.5*infonce", f"mine returns shape (4,): {RETURN}"),
        ("None", " + 0.5*infonce", "mine returns NoneType: return a tensor"),
        ("value.detach()", "", f"mine has no gradient: {COMPUTE}"),
    ],
)
def test_a_value_that_cannot_be_trained_with_is_named(
    value: str, more: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(VALUED.format(value))
    record = stub_domain.cell(tmp_path, f"{tmp_path}/mine.py:Valued{more}")
    assert record["status"] == "failed"
    assert record["details"]["error"].startswith(message)


@pytest.mark.parametrize("call", CHANGES)
def test_a_setting_that_a_step_changes_is_named_and_put_back(call: str, tmp_path: Path) -> None:
    expected = stub_domain.cell(tmp_path / "before")["metrics"]
    text = LOSSES.replace("torch.set_default_dtype(torch.float64)", CHANGES[call])
    (tmp_path / "mine.py").write_text(text)
    record = stub_domain.cell(tmp_path, f"{tmp_path}/mine.py:Changes")
    assert record["status"] == "failed"
    assert record["details"]["error"] == (
        f"mine calls {call}, which changes the other trainings of the process: remove the call"
    )
    assert stub_domain.cell(tmp_path / "after")["metrics"] == expected


@pytest.mark.parametrize("call", ["os.chdir", "torch.set_default_dtype", "torch.set_grad_enabled"])
@pytest.mark.parametrize("where", ["file", "constructor"])
def test_a_setting_that_making_the_loss_changes_is_refused(
    where: str, call: str, tmp_path: Path
) -> None:
    text = LOSSES.replace("torch.set_default_dtype(torch.float64)", CHANGES[call])
    text = text.replace("here: bool = False", "here: bool = True")
    text += CHANGES[call] * (where == "file")
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=f"mine.py.* calls {call}, which changes the other"):
        stub_domain.cell(tmp_path, f"{tmp_path}/mine.py:Changes")


def test_draws_of_a_loss_are_those_of_seed_epoch_and_step(tmp_path: Path) -> None:
    name, found = loss(tmp_path, "Draws"), []
    for disturbance in (1, 2):
        torch.manual_seed(disturbance)
        random.seed(disturbance)
        np.random.seed(disturbance)
        before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
        found += [stub_domain.cell(tmp_path / str(disturbance), name)]
        after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
        assert torch.equal(before[0], after[0])
        assert before[1:] == after[1:]
    (once, again), other = found, stub_domain.cell(tmp_path / "1", name, seed=1)
    assert once["metrics"] == again["metrics"]
    assert once["details"]["loss_by_epoch"] == again["details"]["loss_by_epoch"]
    assert once["details"]["loss_by_epoch"] != other["details"]["loss_by_epoch"]


def test_weights_that_the_last_step_spoils_are_a_divergence(tmp_path: Path) -> None:
    record = stub_domain.cell(tmp_path, loss(tmp_path, "LastWeights"))
    assert record["status"] == "diverged"
    assert record["details"]["error"] == "a weight is not finite after step 2"
    assert all(map(math.isfinite, record["details"]["loss_by_epoch"]))


def test_seeds_of_one_run_train_with_one_reading_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, evaluate = loss(tmp_path, "Weighed"), stub_domain.Stub.evaluate

    def train(results: str) -> list[dict[str, Any]]:
        return cb.run("graph", name, seeds="0-3", recipe={"epochs": 1}, results=tmp_path / results)

    def edit(domain: stub_domain.Stub, model: torch.nn.Linear) -> Evaluation:
        (tmp_path / "mine.py").write_text(LOSSES.replace("weight = 1", "weight = 3"))
        return evaluate(domain, model)

    expected = train("whole")
    monkeypatch.setattr(stub_domain.Stub, "evaluate", edit)
    edited, later = train("edited"), train("later")
    for key in ("loss_code", "metrics"):
        assert [one[key] for one in edited] == [one[key] for one in expected]
        assert not any(one[key] == two[key] for one, two in zip(later, expected, strict=True))


def test_data_that_are_edited_between_two_seeds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub_domain.Stub, "data_hash", lambda self, **_: f"{self.seed // 2:064}")
    with pytest.raises(UserError, match="label-pairs was edited before seed 2 read it"):
        cb.run("graph", "infonce", seeds="0-3", recipe={"epochs": 1}, results=tmp_path)
    assert len(list(tmp_path.glob("runs/*/*/*/*.json"))) == 2


def test_ranks_that_read_different_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "from_all", lambda value: [value, "another"])
    with pytest.raises(UserError, match="a file was edited while the processes read it"):
        stub_domain.cell(tmp_path)
