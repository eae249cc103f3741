"""Parameters of a loss that change over a training: their course, records and keys."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.cli.arguments import parse_pairs
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.registry import domain_class, make_recipe
from contrastbench.losses import LossSpec, UserError, get_loss
from contrastbench.losses.schedules import Schedule

RECIPE = {"epochs": 3, "limit": 60, "folds": 3, "batch_size": 20}


def cell(results: Path, params: dict[str, Any], loss: str = "infonce") -> Record:
    work = Experiment("graph", "motifs", LossSpec(loss, params), {"epochs": 1})
    return runner.run_cell(work, 0, Options(results, device="cpu"))[0]


def test_the_first_step_has_the_first_value_and_the_last_step_the_last() -> None:
    recipe = make_recipe("graph", RECIPE)
    domain = domain_class("graph")("motifs", recipe, 0, None, torch.device("cpu"))
    loss, seen = get_loss("infonce", temperature="cosine(0.1, 1.0)"), []
    train(domain, loss, look=lambda contrasts, _: [seen.append(loss.temperature), contrasts][1])
    steps = 3 * domain.steps()
    assert seen == [Schedule("cosine", 0.1, 1.0).at(step / (steps - 1)) for step in range(steps)]
    assert (seen[0], seen[-1]) == (0.1, 1.0)


def test_a_record_has_the_schedule_and_the_last_temperature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_domain.install(monkeypatch)
    scheduled = cell(tmp_path, {"temperature": "linear(.1,1)"})
    assert scheduled["params"] == {"temperature": "linear(0.1, 1.0)"}
    assert "learned" not in scheduled["details"]
    learned = cell(tmp_path, {"temperature": "learned(0.1, lr=0.5)"})
    assert learned["params"] == {"temperature": "learned(0.1, lr=0.5)"}
    (value,) = learned["details"]["learned"].values()
    assert list(learned["details"]["learned"]) == ["temperature"]
    assert value > 0
    assert value != pytest.approx(0.1, rel=1e-3), "the last value, not its logarithm or the first"
    a_sum = cell(tmp_path, {"temperature": "learned"}, "infonce + hcl")
    assert set(a_sum["details"]["learned"]) == {"infonce.temperature", "hcl.temperature"}
    (words,) = [one for one in shlex.split(learned["command"]) if one.startswith("temperature=")]
    assert parse_pairs("--set", [words]) == learned["params"]


def test_one_schedule_has_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_domain.install(monkeypatch)

    def key(value: Any) -> str:
        return cell(tmp_path, {"temperature": value})["key"]

    assert key("cosine(0.1,1)") == key("cosine(.1, 1.0)")
    assert len({key(0.5), key("linear(0.5, 0.5)"), key("cosine(0.5, 0.5)"), key("learned")}) == 4


def test_neighbours_do_not_follow_a_temperature_that_changes() -> None:
    recipe = {"knn_temperature": "loss"}
    for value in ("cosine(0.1, 1)", "learned"):
        work = Experiment("image", "digits", LossSpec("infonce", {"temperature": value}), recipe)
        with pytest.raises(UserError, match=r"changes .* --recipe knn_temperature=0\.\d+"):
            work.check()
