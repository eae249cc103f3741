"""Losses that learn, or keep numbers of each sample: trained, saved, recorded and refused."""

from pathlib import Path

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.benchmarks.running.opening import loss_on_device
from contrastbench.benchmarks.running.optimizers import make_optimizer
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import learned_details, run_cell
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.registry import DOMAINS, make_recipe
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.spec import LossSpec
from opened import opened, tiny

LEARNED = Path(__file__).parents[2] / "losses" / "learned.py"
RECIPE = {"epochs": 2, "limit": 60, "folds": 3, "batch_size": 20}


def test_a_temperature_is_learned_with_a_rate_of_its_own() -> None:
    loss = get_loss(f"{LEARNED}:Temperature", lr=0.05)
    train(opened("graph", "motifs", **RECIPE), loss)
    assert loss.temperature.item() != 0.5
    assert loss.params == {"temperature": 0.5, "lr": 0.05}, "a record holds what it was made with"
    optimizer = make_optimizer(
        make_recipe("graph", {"weight_decay": 0.1}),
        opened("graph").model().parameters(),
        loss.parameter_groups(),
    )
    assert [(group["lr"], group["weight_decay"]) for group in optimizer.param_groups] == [
        (0.01, 0.1),
        (0.05, 0.0),
    ]


MANY = """
import torch
from contrastbench.losses.library.infonce import InfoNCE

class Many(InfoNCE):
    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.weights = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        self.matrix = torch.nn.Parameter(torch.ones(40, 3))
        self.turn = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
        self.far = torch.nn.Parameter(torch.tensor(1e200, dtype=torch.float64))
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)

    def terms(self, scores):
        return super().terms(scores) * self.scale.exp() + self.weights.sum()
"""


def test_a_record_has_the_values_that_were_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_domain.install(monkeypatch)
    (tmp_path / "many.py").write_text(MANY)
    record = stub_domain.cell(tmp_path, f"{tmp_path}/many.py:Many")
    learned = record["details"]["learned"]
    assert set(learned) == {"scale", "weights", "matrix", "turn", "far"}
    assert learned["scale"] != 2.0, "the last step's value, not the first"
    assert len(learned["weights"]) == 2
    assert [learned[name] for name in ("matrix", "turn", "far")] == [
        {"shape": [40, 3]},
        {"shape": [2]},  # JSON has no complex numbers
        {"shape": []},  # beyond what a record holds
    ]
    (kept,) = (found for _, found in reading.all_records(tmp_path))
    assert kept["details"]["learned"] == learned, "it can be read again"


def test_proxies_are_drawn_by_the_seed_for_each_class(tmp_path: Path) -> None:
    loss, recipe = LossSpec(f"{LEARNED}:Proxy"), {"pairing": "supervised"}
    experiment = make_experiment("image", "digits", loss, recipe, tiny=True)
    first, second = (
        run_cell(experiment, 0, Options(tmp_path / name, device="cpu"))[0] for name in ("a", "b")
    )
    assert first["status"] == "ok", first["details"]
    assert first["details"]["loss_by_epoch"] == second["details"]["loss_by_epoch"]


@pytest.mark.parametrize("loss", [f"{LEARNED}:Proxy", "npair + 0.1*proxy_anchor"])
def test_a_self_supervised_training_has_no_classes_for_it(loss: str, tmp_path: Path) -> None:
    experiment = Experiment("graph", "motifs", LossSpec(loss), {"epochs": 1})
    with pytest.raises(UserError, match=r"needs class labels: .* --recipe pairing=supervised"):
        run_cell(experiment, 0, Options(tmp_path, device="cpu"))


def test_the_peak_of_a_cell_is_its_own(tmp_path: Path) -> None:
    """A larger cell before it in the same process must not show."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux can forget a process's peak")
    experiment = Experiment("graph", "motifs", LossSpec("infonce"), RECIPE)
    small, _ = run_cell(experiment, 0, Options(tmp_path, device="cpu"))
    torch.ones(600 * 2**20, dtype=torch.uint8)  # is freed at once, but was held
    after, _ = run_cell(experiment, 1, Options(tmp_path, device="cpu"))
    assert after["peak_memory_mib"] < small["peak_memory_mib"] + 300


TINY = {"epochs": 2, "limit": 40, "batch_size": 8}


@pytest.mark.parametrize("name", DOMAINS)
def test_it_is_prepared_with_the_samples_of_the_domain(name: str) -> None:
    domain = tiny(name, **TINY)
    loss = loss_on_device(get_loss("infonce + isogclr"), domain)
    train(domain, loss)
    _, isogclr = loss.losses
    assert len(isogclr.temperatures) == domain.sample_count
    met = isogclr.log_u.isfinite()
    assert met.sum() > domain.sample_count - 8
    assert isogclr.temperatures[met].unique().numel() > met.sum() / 2
    mean = isogclr.temperatures[met].mean().item()
    assert learned_details(loss) == {"learned": {"isogclr.mean_temperature": mean}}


def test_a_domain_that_does_not_number_its_samples_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_domain.install(monkeypatch)
    with pytest.raises(UserError, match="and Stub does not number them: write its sample_count"):
        stub_domain.cell(tmp_path, "sogclr")


@pytest.mark.parametrize(("pairing", "lines"), [("own_view", 0), ("both_views", 1)])
def test_a_loss_of_the_own_view_says_where_it_is_not_its_papers(
    pairing: str, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    domain = tiny("tabular", **TINY, pairing=pairing)
    capsys.readouterr()
    loss_on_device(get_loss("infonce + dhel"), domain)
    said = capsys.readouterr().err
    assert said.count("give --recipe pairing=own_view") == lines
