"""Draws the figures of theory.md: `python docs/plot_theory.py`; needs matplotlib and scipy."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from scipy.optimize import minimize_scalar
from torch import Tensor

from contrastbench.losses import ScoreLoss, get_loss
from contrastbench.losses.base import Scores

FOLDER = Path(__file__).parent
NEGATIVES = (
    torch.linspace(0, 1, 2001, dtype=torch.float64).pow(3).mul(1.6).sub(0.6).unsqueeze(0)
)  # few hard ones
NAMES = {"temperature": "tau"}


def value(name: str, neg: Tensor, **params: object) -> Tensor:
    """The loss of an anchor: positive 0, not in the denominator, mean over the negatives."""
    loss = get_loss(name, **params)
    assert isinstance(loss, ScoreLoss)
    count = torch.tensor([[float(neg.shape[1])]], dtype=neg.dtype)
    return loss.combine(loss.terms(Scores(torch.zeros_like(count), neg, count, False, True)))


def weight_curves(axes: Axes) -> None:
    """Draw the weights of Figure 3 in the ADNCE paper.

    The weight that the gradient puts on a negative of a score, 1 on average.
    """
    s = torch.linspace(-1, 1, 201, dtype=torch.float64).unsqueeze(0).requires_grad_()
    settings = [("infonce", {"temperature": t}) for t in (0.07, 0.2, 0.3)]
    settings += [
        ("adnce", {"temperature": 0.3, "mu": m, "sigma": w})
        for m, w in ((0.7, 1.0), (0.4, 1.0), (0.1, 0.5))
    ]
    for name, params in settings:
        (weight,) = torch.autograd.grad(value(name, s, **params), s)
        label = (
            name
            + " "
            + ", ".join(f"{NAMES.get(key, key)} {number:g}" for key, number in params.items())
        )
        axes.plot(
            s.detach()[0],
            (weight / weight.mean())[0],
            label=label,
            linestyle="-" if name == "adnce" else "--",
        )
    axes.set(
        xlabel="cosine with the anchor",
        ylabel="weight of a negative",
        yscale="log",
        ylim=(1e-3, 60),
    )


def optimal_temperature(axes: Axes) -> None:
    """Corollary 3.4: the dual's best alpha and its approximation."""
    radii = np.geomspace(1e-3, 1, 40)
    variance = NEGATIVES.var(correction=0).item()
    axes.plot(radii, [best_alpha(eta) for eta in radii], label="optimal alpha")
    axes.plot(radii, np.sqrt(variance / (2 * radii)), "--", label="sqrt(V / 2 eta)")
    axes.set(xlabel="radius eta", ylabel="temperature", xscale="log", yscale="log")


def best_alpha(eta: float) -> float:
    """The minimiser of alpha eta + alpha log E exp(s / alpha)."""
    found = minimize_scalar(
        lambda a: a * eta + a * value("infonce", NEGATIVES, temperature=a).item(),
        bounds=(0.02, 50),
        method="bounded",
    )
    return float(found.x)


def expansion(axes: Axes) -> None:
    """Theorem 3.5: tau InfoNCE and its second-order expansion."""
    taus = np.geomspace(0.05, 2, 40)
    exact = [t * value("infonce", NEGATIVES, temperature=t).item() for t in taus]
    axes.plot(taus, exact, label="tau infonce")
    axes.plot(
        taus,
        [value("mean_variance", NEGATIVES, temperature=t).item() for t in taus],
        "--",
        label="mean_variance",
    )
    chi2 = [value("phi_dro", NEGATIVES, temperature=t, phi="chi2").item() for t in taus]
    axes.plot(taus, chi2, ":", label="phi_dro chi2")
    axes.set(xlabel="temperature", ylabel="loss", xscale="log")


def main() -> None:
    """Write one SVG for each figure."""
    plt.rcParams["svg.hashsalt"] = "theory"  # the same file from the same numbers
    for draw in (weight_curves, optimal_temperature, expansion):
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        draw(axes)
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
        figure.savefig(FOLDER / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
