"""Losses of installed packages, and own losses of two whole views."""

from pathlib import Path

import pytest
import torch

import packaged_losses
from contrastbench.losses import LossSpec, UserError, get_loss
from contrastbench.losses import source as ours
from contrastbench.losses.contrast import (
    Contrast,
    both_views,
    other_view,
    query_key,
    same_class,
    whole_row,
)
from contrastbench.losses.laws import LAWS, check_loss
from shared_losses import shown

Z1, Z2 = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
VICREG = "packaged_losses:Vicreg"


@pytest.mark.parametrize("pairing", [both_views, other_view, whole_row, query_key])
def test_a_class_sees_the_raw_views_of_each_pairing(pairing) -> None:
    loss = get_loss(VICREG, weight=3)
    assert torch.equal(loss(pairing(Z1, Z2)), packaged_losses.Vicreg(3)(Z1, Z2))
    assert (loss.name, loss.params) == (
        VICREG,
        {"weight": 3, "gather_distributed": False, "eps": 1e-4},
    )


def test_a_function_and_a_sum() -> None:
    contrast = both_views(Z1, Z2)
    expected = packaged_losses.distance(Z1, Z2, power=3)
    assert torch.equal(get_loss("packaged_losses:distance", power=3)(contrast), expected)
    whole = get_loss("infonce + 0.5*packaged_losses:distance", temperature=0.2, power=3)
    alone = get_loss("infonce", temperature=0.2)(contrast)
    torch.testing.assert_close(whole(contrast), alone + 0.5 * expected)
    assert whole.params["packaged_losses:distance.power"] == 3
    assert get_loss(whole.name, **whole.params)(contrast) == whole(contrast)


@pytest.mark.parametrize(
    "contrast",
    [
        both_views(Z1, Z2, positives=[Z1]),
        both_views(Z1, Z2, labels=torch.arange(6) // 2),
        same_class(Z1, Z2, torch.arange(6) // 2),
        query_key([Z1, Z1], Z2),
    ],
    ids=["positives", "labels", "same_class", "crops"],
)
def test_a_pairing_of_more_or_less_than_two_views_is_refused(contrast: Contrast) -> None:
    with pytest.raises(UserError, match=f"{VICREG} takes two whole views of each sample, which"):
        get_loss(VICREG)(contrast)


def test_a_function_and_a_module_of_ones_own_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(Path(packaged_losses.__file__).read_text())
    contrast = both_views(Z1, Z2)
    loss = get_loss(f"{file}:distance", power=3)
    assert torch.equal(loss(contrast), packaged_losses.distance(Z1, Z2, power=3))
    whole = LossSpec(f"{file}:distance + 2*{file}:Vicreg", {"power": 3})
    assert whole.complete.name == "own.distance + 2*own.Vicreg" == whole.make().name
    assert whole.complete.params == whole.make().params
    assert whole.files["files"].keys() == {"own.py"}
    assert "packages" not in whole.files
    assert (whole.code, len(whole.code)) == (LossSpec(whole.name).code, 64)
    assert [one.name for one in check_loss(f"{file}:Vicreg", range(1)) if not one.passed] == []


def test_the_code_is_the_file_and_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = LossSpec(VICREG).code
    assert len(alone) == 64
    assert LossSpec("packaged_losses:Learned").code != alone
    monkeypatch.setattr(ours, "distributions", lambda: {"packaged_losses": ["theirs"]})
    monkeypatch.setattr(ours, "version", lambda name: {"theirs": "1.0"}[name])
    first = LossSpec(VICREG).code
    monkeypatch.setattr(ours, "version", lambda name: {"theirs": "1.1"}[name])
    assert len({alone, first, LossSpec(VICREG).code}) == 3
    assert LossSpec(f"infonce + {VICREG}").code not in ("", alone)
    monkeypatch.undo()
    assert LossSpec("torch.nn:MSELoss").code  # torch's files are not read, its release counts


def test_the_battery_skips_laws_of_scores() -> None:
    results = check_loss(VICREG, seeds=range(1))
    assert [r.name for r in results] == [law.name for law in LAWS]
    assert all(r.passed for r in results), [r for r in results if not r.passed]
    skipped = {r.name: r.detail for r in results if r.word == "skipped"}
    assert skipped["negatives"] == "it takes whole views, and this law is about scores"
    assert not {"runs", "gradient", "randomness", "scalar", "permutation"} & skipped.keys()
    assert not {"batch size", "detached", "device", "in place"} & skipped.keys()


@pytest.mark.parametrize(
    ("name", "law", "line"),
    [
        ("Detached", "detached", ""),
        ("InPlace", "in place", ""),
        ("OnHost", "device", "return mse_loss(z1 * torch.ones"),
    ],
)
def test_a_law_of_views_finds_its_mistake(name: str, law: str, line: str) -> None:
    last = check_loss(f"packaged_losses:{name}", seeds=range(1))[-1]
    assert (last.name, last.passed) == (law, False), last
    assert line in last.place


@pytest.mark.filterwarnings("ignore")  # lightly's own
def test_the_shown_lejepa_is_that_of_two_global_views(tmp_path: Path) -> None:
    lightly = pytest.importorskip("lightly.loss", reason='pip install "[perf]"')
    name = f"{shown('lejepa.py', tmp_path)}:LeJEPA"
    z1, z2 = Z1.double(), Z2.double()
    torch.manual_seed(0)
    value = get_loss(name, lam=0.1).double()(other_view(z1, z2))
    torch.manual_seed(0)
    regulariser = lightly.lejepa_loss.SIGReg().double()(torch.stack([z1, z2, z1, z2]))
    distance = ((z1 - z2) / 2).square().mean()  # from the mean of both views
    torch.testing.assert_close(value, 0.1 * regulariser + 0.9 * distance)
    results = check_loss(name, seeds=range(1))
    assert [one.name for one in results if not one.passed] == []


@pytest.mark.filterwarnings("ignore")  # lightly's own
@pytest.mark.parametrize("name", ["VICRegLoss", "BarlowTwinsLoss"])
def test_losses_of_lightly_pass_the_battery(name: str) -> None:
    losses = pytest.importorskip("lightly.loss", reason='pip install "[perf]"')
    loss = get_loss(f"lightly.loss:{name}")
    assert torch.equal(loss(both_views(Z1, Z2)), getattr(losses, name)()(Z1, Z2))
    failed = [r for r in check_loss(f"lightly.loss:{name}", seeds=range(1)) if not r.passed]
    assert failed == []
