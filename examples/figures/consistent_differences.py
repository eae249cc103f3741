"""Clusters whose differences are alike or not, classified by neighbours (DASL, Figure 2, Table 7).

    python examples/figures/consistent_differences.py OUT.svg --neighbours 10

Three normal clusters in the plane, 1,000 points of each to train on and 200 to test. The paper's
claim: clusters with consistent differences are classified better. Its means are not printed, so
distances here have one mean (the first two), or neighbours one distance (the last two). The last
case has straight directions and the mean distance of the corner.
"""

import math
from statistics import mean

import torch
from common import arguments, panels, save
from sklearn.neighbors import KNeighborsClassifier

TRAIN, TEST = 1000, 200
CORNER = 2.5 * math.sqrt(2)
NEARER = (5 + CORNER) / 4
CASES = {  # distances of the centres 1-2, 2-3 and 1-3
    "distances unequal": (1.5, 3.75, 3.75),
    "distances equal": (3.0, 3.0, 3.0),
    "directions unequal": (2.5, 2.5, CORNER),
    "directions equal": (2.5, 2.5, 5.0),
    "directions equal, nearer": (NEARER, NEARER, 2 * NEARER),
}


def centres(a, b, c):
    """Return three points of the plane with these distances."""
    x = (a * a + c * c - b * b) / (2 * a)
    return torch.tensor([[0.0, 0.0], [a, 0.0], [x, math.sqrt(max(0.0, c * c - x * x))]])


def drawn(case, count, rng):
    """Return points of each cluster, one cluster after the other, and their clusters."""
    x = centres(*case)[:, None] + torch.randn(3, count, 2, generator=rng)
    return x.flatten(0, 1), torch.arange(3).repeat_interleave(count)


def accuracy(case, seed, neighbours):
    """Return the percent of test points whose neighbours tell their cluster."""
    rng = torch.Generator().manual_seed(seed)
    (x, y), (test, of_test) = drawn(case, TRAIN, rng), drawn(case, TEST, rng)
    return 100 * KNeighborsClassifier(neighbours).fit(x, y).score(test, of_test)


def main(given=None):
    """Draw each case's clusters and the lengths and directions of its differences."""
    further = [("neighbours", 10), ("draws", 20)]
    args = arguments(__doc__, further=further, given=given)
    drawing, axes = panels(2 * len(CASES), "differences of clusters", columns=len(CASES))
    for k, (name, case) in enumerate(CASES.items()):
        seeds = range(2 if args.tiny else args.draws)
        score = mean(accuracy(case, seed, args.neighbours) for seed in seeds)
        x, y = drawn(case, 200, torch.Generator().manual_seed(0))
        axes[k].scatter(*x.T, c=y, s=2, cmap="tab10", rasterized=True)
        axes[k].set_title(f"{name}: {score:.1f} %", fontsize=8)
        axes[k].set_aspect("equal", "datalim")
        clusters = x.view(3, -1, 2)
        below = axes[k + len(CASES)]
        for i, j in ((0, 1), (1, 2), (0, 2)):
            between = clusters[i] - clusters[j]
            angle = torch.atan2(between[:, 1], between[:, 0]).rad2deg() % 180
            shown = between.norm(dim=1) if "distances" in name else (angle + 90) % 180 - 90
            below.hist(shown.tolist(), 30, histtype="step", label=f"{i + 1}, {j + 1}")
        below.set_xlabel("length" if "distances" in name else "direction in degrees")
        print(f"{name}: {score:.2f} % of test points right")
    axes[len(CASES)].legend(fontsize=6)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
