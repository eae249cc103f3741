"""`examples/figures`: each script draws, and what estimates information knows it of Gaussians."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[3]
FIGURES = ROOT / "examples" / "figures"
SHARED = ("common", "gaussians")
NAMES = sorted(path.stem for path in FIGURES.glob("*.py") if path.stem not in SHARED)
RECORDS = ("false_negatives", "learning_curves", "two_parameters", "terms", "scores", "embeddings")
SMALL = {
    "false_negatives": ["--temperatures", "0.1", "0.5"],
    "two_parameters": ["--first", "1", "--second", "1", "4"],
    "views_information": ["--values", "none", "base"],
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a file of the folder, which finds those beside it."""
    monkeypatch.syspath_prepend(FIGURES)
    yield lambda name: runpy.run_path(str(FIGURES / f"{name}.py"))
    for name in SHARED:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_each_figure_is_drawn(name: str, script: Any, tmp_path: Path, capsys: Any) -> None:
    results = ["--results", str(tmp_path)] if name in RECORDS else []
    script(name)["main"]([str(tmp_path / "out.svg"), "--tiny", *results, *SMALL.get(name, [])])
    assert (tmp_path / "out.svg").read_text().count("<path") > 3
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "out.svg")


def test_the_gallery_has_each_figure() -> None:
    page = (ROOT / "docs" / "figures.md").read_text()
    assert len(NAMES) == 10
    for name in NAMES:
        assert f"python examples/figures/{name}.py" in page
        assert f"](figures/{name}.svg)" in page
        assert (ROOT / "docs" / "figures" / f"{name}.svg").exists()
        assert len((FIGURES / f"{name}.py").read_text().splitlines()) <= 80


@pytest.mark.parametrize("information", [0.5, 2.0, 4.0])
def test_gaussians_have_the_information_of_the_closed_form(information: float, script: Any) -> None:
    made = script("gaussians")
    rho = made["correlation"](information)
    assert -made["DIMENSIONS"] / 2 * torch.tensor(1 - rho**2).log() == pytest.approx(information)
    x, y = made["drawn"](information, torch.Generator().manual_seed(0), 20_000)
    found = (x * y).mean() / (x.square().mean() * y.square().mean()).sqrt()
    assert found == pytest.approx(rho, abs=0.01)


@pytest.mark.parametrize(("alpha", "each"), [(0.0, False), (0.3, False), (0.0, True)])
def test_estimates_by_the_best_critic_are_the_information(
    alpha: float, each: bool, script: Any
) -> None:
    """The critic is log r less log(alpha r + 1 - alpha), and any constant may be added to it.

    Where `each` anchor has its own Z, any number for each anchor may be.

    With log r = log p(x, y) / p(x) p(y) of Gaussians, both estimates have mean I as n grows.
    """
    made, information = script("gaussians"), 1.0
    rho = made["correlation"](information)
    rng, seen = torch.Generator().manual_seed(0), []
    for _ in range(10):
        x, y = (part.double() for part in made["drawn"](information, rng, 1000))
        squares = x.square().sum(1)[:, None] + y.square().sum(1)
        log_r = information + (rho * x @ y.T - rho**2 / 2 * squares) / (1 - rho**2)
        critic = log_r - (alpha * log_r.exp() + 1 - alpha).log() + 3.0
        critic = critic + 5 * torch.rand(len(x), 1, generator=rng) * each
        seen.append(made["corrected"](made["as_scores"](critic), alpha, each))
    assert torch.stack(seen).mean() == pytest.approx(information, abs=0.06)
