"""What a training and its first steps say of a loss."""

import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from contrastbench.benchmarks.checks import trial as trials
from contrastbench.benchmarks.checks.trial import STEPS, Trial, trial
from contrastbench.benchmarks.cli.check import trial_text
from contrastbench.benchmarks.cli.run import record_lines
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import history, training
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.training import train
from contrastbench.losses import both_views, get_loss, other_view
from contrastbench.losses.contrast import unit
from contrastbench.losses.spec import LossSpec

RECIPE = {"epochs": 2, "limit": 60, "folds": 3, "batch_size": 20}


def rows(seed: int, count: int = 20, dim: int = 6) -> torch.Tensor:
    return unit(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)))


def test_measures_are_those_of_loops() -> None:
    one, two = rows(0), rows(1)
    found = history.embedding_health(other_view(one, two))
    values = torch.linalg.svdvals(one.double())
    shares = values / values.sum()
    assert found["rank"] == pytest.approx(math.exp(-(shares * shares.log()).sum()), rel=1e-6)
    assert found["rank_of"] == 6
    far = [(a - b).square().sum().item() for a, b in zip(one, two, strict=True)]
    assert found["alignment"] == pytest.approx(sum(far) / 20, rel=1e-5)
    apart = [(one[i] - two[j]).square().sum() for i in range(20) for j in range(20) if i != j]
    mean = sum(math.exp(-2 * distance) for distance in apart) / len(apart)
    assert found["uniformity"] == pytest.approx(math.log(mean), rel=1e-5)
    assert found["tied_cosines"] == 0


def test_a_point_and_equal_samples_are_seen() -> None:
    point = history.embedding_health(both_views(*[rows(0)[:1].expand(20, 6)] * 2))
    assert point["rank"] == pytest.approx(1, abs=1e-3)
    assert point["uniformity"] == pytest.approx(0, abs=1e-5)
    assert (point["rank_of"], point["tied_cosines"]) == (6, 100)
    twice = torch.cat([rows(0, 10), rows(0, 10)])  # each anchor meets 9 pairs, and its own twin
    assert history.embedding_health(other_view(twice, twice))["tied_cosines"] == pytest.approx(
        100 * 18 / 19
    )


def test_a_collapse_and_a_divergence_are_said_with_a_remedy(tmp_path: Path) -> None:
    seen = history.embedding_health(both_views(*[unit(rows(0) * 1e-3 + 1)] * 2))
    details = {"health": seen, "error": "the loss is nan in epoch 1, step 5"}
    about = {"domain": "graph", "dataset": "MUTAG", "loss": "mine", "seed": 0, "metrics": {}}
    well = {**about, "status": "ok", "seconds": 1.0, "details": details, "recipe": {"lr": 0.03}}
    (_, line) = record_lines(well, tmp_path)
    assert (
        line == "  the embedding has rank 1.0 of 6: it collapsed, all samples have nearly the same"
    )
    (_, line) = record_lines(
        {**well, "status": "diverged", "details": {**details, "health": {}}}, tmp_path
    )
    assert line == "  its learning rate was 0.03: try --recipe lr=0.003"
    trained = {**details, "health": history.embedding_health(other_view(rows(0), rows(1)))}
    assert len([*record_lines({**well, "details": trained}, tmp_path)]) == 1


def test_a_training_notes_its_health() -> None:
    """A resumed one has the same: `History` compares it."""
    work = Experiment("graph", "label-pairs", LossSpec("infonce"), RECIPE)
    opened = open_domain(work, 0, None, torch.device("cpu"))
    whole = train(opened, get_loss("infonce"))[1].details["health"]
    assert 1 < whole["rank"] <= whole["rank_of"] == 20
    assert min(whole["gradient_start"], whole["gradient_end"]) > 0


def test_a_norm_without_a_number_is_left_out_of_the_record() -> None:
    """JSON has no infinity: the record of a diverging training could not be written."""
    history = SimpleNamespace(health={}, losses=[], loss_by_epoch=[])
    norms = {"first": torch.tensor(float("inf")), "last": torch.tensor(2.0)}
    training.Run.collect(SimpleNamespace(norms=norms, values=[], history=history, log=None))
    assert history.health == {"last": 2.0}


LOSSES = """
import sys
import torch

class Pull(torch.nn.Module):
    def forward(self, z1, z2):
        return (z1 - z2).square().sum(dim=1).mean()

class Burst(torch.nn.Module):
    def forward(self, z1, z2):
        return 1e38 * (z1 - z2).square().sum(dim=1).mean() ** 2

class Tires(torch.nn.Module):
    calls = 0

    def forward(self, z1, z2):
        Tires.calls += z1.requires_grad and len(z1) > 64
        return (z1 - z2).square().mean() / (Tires.calls < 2 or sys.exit("tired"))
"""


@pytest.mark.parametrize("name", ["Pull", "Burst"])
def test_the_first_steps_say_whether_a_loss_trains(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LOSSES)
    found = trial(Experiment("graph", "label-pairs", LossSpec(f"{file}:{name}"), {}))
    if name == "Pull":
        assert len(found.losses) == STEPS
        assert trial_text(found).startswith("20 steps: the loss went from ")
        point = replace(found, health={"rank": 1.2, "rank_of": 88.0, "uniformity": -0.01})
        assert trial_text(point).endswith("the embedding has rank 1.2 of 88: it collapsed")
    else:
        assert trial_text(found).endswith("try --recipe lr=0.001")
        assert trial_text(found).startswith("diverged, the loss is ")


PAGE = Path(__file__).parents[3] / "docs" / "loss-kinds.md"
ROWS = re.findall(r"^\| `([a-z_.]+)` \| (`\w+Loss`.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)


def test_the_page_names_losses_of_four_libraries() -> None:
    assert len(ROWS) == 4


@pytest.mark.filterwarnings("ignore")  # the libraries' own
@pytest.mark.parametrize(("module", "names"), ROWS, ids=[module for module, _ in ROWS])
def test_each_loss_of_the_page_trains_in_one_line(
    module: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(module, reason='pip install "[perf]"')
    monkeypatch.setattr(trials, "STEPS", 2)
    for name in re.findall(r"\w+", names):
        spec = LossSpec(f"{module}:{name}")
        found = trial(Experiment("tabular", "digits-table", spec, {}))
        assert (found.error, found.raised, len(found.losses)) == ("", None, 2), name
        assert found.losses[0] != found.losses[1], name


def test_a_domain_that_cannot_be_opened_is_said() -> None:
    assert trial_text(Trial("image", error="no torchvision")) == "not tried: no torchvision"


def test_a_loss_that_raises_in_its_trial_is_a_failed_check(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LOSSES)
    monkeypatch.setattr("contrastbench.losses.laws.check_loss", lambda loss: [])
    code, out, err = bench("check-loss", f"{file}:Tires")
    fail, place, *_, last = out.splitlines()
    assert (code, err, fail.split()[:2]) == (1, "", ["FAIL", "tried"])
    assert "graph, step 2: SystemExit: tired" in fail
    assert "at mine.py:18: return" in place
    assert last.startswith("0 of 1 checks passed")
