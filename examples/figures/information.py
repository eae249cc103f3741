"""The information of Gaussians as losses estimate it, with bias and variance (RényiCL, Figure 2).

    python examples/figures/information.py OUT.svg --steps 4000

A critic f(x, y) is trained on pairs of correlated Gaussians, whose information is known:
-d/2 log(1 - rho^2). Thin: minus the loss, a lower bound. Thick: corrected for the skew alpha (Lee
and Shin 2022, C.1), over pairs that have a density ratio. Numbers are of each level's second half.
"""

from functools import partial

import torch
from common import arguments, panels, save
from gaussians import DIMENSIONS, as_scores, corrected, drawn
from torch import nn

BATCH = 128  # appendix C.2, as the dimensions
SKEWED = [f"{name}(alpha={1 / BATCH})" for name in ("cpc", "mlcpc", "rmlcpc")]


def estimates(loss, alpha, levels, steps):
    """Return (levels, steps, 2) minus the loss and the corrected estimate, before each update."""
    torch.manual_seed(0)
    of_x, of_y = networks = nn.ModuleList(
        nn.Sequential(nn.Linear(DIMENSIONS, 256), nn.ReLU(), nn.Linear(256, 32)) for _ in "xy"
    )
    estimate = partial(corrected, alpha=alpha)
    if loss.name == "cpc":  # whose critic is free for each anchor, so that its skew cancels
        estimate = partial(corrected, alpha=0.0, each=True)
    rng, optimizer = torch.Generator().manual_seed(0), torch.optim.Adam(networks.parameters(), 1e-3)
    seen = []
    for level in (level for level in levels for _ in range(steps)):
        x, y = drawn(level, rng, BATCH)
        scores = as_scores(of_x(x) @ of_y(y).T)
        value = loss.combine(loss.terms(scores))
        seen.append([-value.item(), estimate(scores).item()])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return torch.tensor(seen).view(len(levels), steps, 2)


def main(given=None):
    """Train a critic by each loss on all levels, draw and print."""
    further = [("steps", 1000), ("levels", [2.0, 4.0, 6.0, 8.0, 10.0])]
    args = arguments(__doc__, losses=[*SKEWED, "renyi", "nwj", "dv"], further=further, given=given)
    steps = 4 if args.tiny else args.steps
    drawing, axes = panels(len(args.losses), f"information of Gaussians, d = {DIMENSIONS}, nats")
    for one, loss in zip(axes, args.losses, strict=False):
        spec = loss.complete.params | {"temperature": 1.0}
        made = type(loss.make())(**spec)
        seen = estimates(made, spec.get("alpha", 0.0), args.levels, steps)
        width = max(1, steps // 50)
        curve = seen.view(-1, 2)[: seen[..., 0].numel() // width * width].view(-1, width, 2)
        for k, line in enumerate((0.8, 1.8)):
            one.plot(torch.arange(len(curve)) * width, curve.nanmean(dim=1)[:, k], linewidth=line)
        edges = [k * steps for k in range(len(args.levels) + 1)]
        one.stairs(args.levels, edges, baseline=None, color="black")
        one.set(title=loss.label, xlabel="step", ylim=(-1, 1.6 * max(args.levels)))
        for level, last in zip(args.levels, seen[:, steps // 2 :, 1], strict=True):
            bias, variance = last.nanmean() - level, last[last.isfinite()].var()
            print(f"{loss.label}, {level:g} nats: bias {bias:+.2f}, variance {variance:.3f}")
    save(drawing, args.out)


if __name__ == "__main__":
    main()
