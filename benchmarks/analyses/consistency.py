"""Analyse clusters with aligned or unaligned differences: Figure 2 and Table 7 of DASL.

Chen et al., "Robust Similarity Learning with Difference Alignment Regularization", ICLR 2024,
section 3.1 and appendix A.1, https://openreview.net/forum?id=K9V7ugVuUz: three Gaussians in the
plane, 1,000 points of each to train on and 200 to test, classified by k nearest neighbours. The
paper learns nothing there. Its means and covariances (Table 6) and its k are not known to us: here
all covariances are the identity, and what is compared has one mean distance, or one distance
between neighbours. Beside the points themselves stand embeddings that a loss has learned of them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.style import COLORS
from contrastbench.benchmarks.analyses.trainer import training_loss
from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.progress import Progress
from contrastbench.domains.random import generator
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.errors import UserError
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import same_class, unit
from contrastbench.losses.library.dar import DAR
from contrastbench.losses.spec import LossSpec

CLUSTERS, TRAIN, TEST = 3, 1000, 200  # points of each cluster, as in the paper
HIDDEN, EMBEDDING_DIM = 64, 8
BATCH, EPOCHS, LR = 96, 20, 1e-3  # of embeddings
DISTANCE_COLUMNS = ("case", "loss", "measure", "cluster", "mean", "std", "n")
RAW_POINTS = "points"  # no loss: what is classified are the points themselves
Embedding = Callable[[Tensor], Tensor]


class ClusterCase(NamedTuple):
    """The distances of the clusters' centres, and how the differences are aligned."""

    first_second: float
    second_third: float
    first_third: float
    alike: Literal["distance", "direction"]


# 3 in the mean; then steps of 2.5 round a corner and straight on, and straight on with the mean
# distance of the corner
CORNER = 2.5 * math.sqrt(2)
NEARER = (5 + CORNER) / 4
CASES = {
    "distances unequal": ClusterCase(1.5, 3.75, 3.75, "distance"),
    "distances equal": ClusterCase(3.0, 3.0, 3.0, "distance"),
    "directions unequal": ClusterCase(2.5, 2.5, CORNER, "direction"),
    "directions equal": ClusterCase(2.5, 2.5, 5.0, "direction"),
    "directions equal, nearer": ClusterCase(NEARER, NEARER, 2 * NEARER, "direction"),
}


class Study(NamedTuple):
    """The settings of the study, which all losses share."""

    neighbours: Sequence[int]
    seeds: Sequence[int]
    epochs: int = EPOCHS


MeasuredScores = dict[tuple[str, str], float]  # by measure and cluster


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse consistency` asks for."""
    study = Study(work.values["neighbours"], work.seeds, 1 if work.tiny else EPOCHS)
    return analyse(work.losses, study, work.options, work.folder)


def analyse(
    methods: Sequence[LossSpec], study: Study, options: Options, folder: Path
) -> Iterator[Path]:
    """Classify the points of each case, and what each loss makes of them; write and draw."""
    for named in methods:
        training_loss(named)  # what cannot be made is named before anything is trained
    device = open_device(options.device, options.deterministic, options.tf32)
    torch.set_num_threads(1)
    rows = []
    with Progress(len(CASES) * (1 + len(methods)) * len(study.seeds), "trainings") as progress:
        for (name, case), method in product(CASES.items(), (None, *methods)):
            label, found = method.label if method else RAW_POINTS, list[MeasuredScores]()
            for seed in study.seeds:
                train, test = (part.to(device) for part in draw_points(case, seed))
                embedding = (
                    train_embedding(training_loss(method), train, seed, study.epochs)
                    if method
                    else None
                )
                found.append(scores(embedding, train, test, study.neighbours))
                progress.step(f"{name}, {label}")
            for measure, cluster in found[0]:
                mean, std = mean_std([score[measure, cluster] for score in found])
                rows.append((name, label, measure, cluster, round(mean, 2), std and round(std, 2)))
    counted = ((*row, len(study.seeds)) for row in rows)
    yield from output.write_results(
        folder, "consistency", DISTANCE_COLUMNS, counted, plot(study.seeds[0])
    )


def centres(case: ClusterCase) -> Tensor:
    """(3, 2) points of these distances."""
    a, b, c = case.first_second, case.second_third, case.first_third
    x = (a * a + c * c - b * b) / (2 * a)
    return torch.tensor([[0.0, 0.0], [a, 0.0], [x, math.sqrt(max(0.0, c * c - x * x))]])


def draw_points(case: ClusterCase, seed: int) -> tuple[Labelled, Labelled]:
    """Training and test points of one distribution, cluster by cluster."""
    rng = generator(torch.device("cpu"), seed)
    x = centres(case).unsqueeze(1) + torch.randn(CLUSTERS, TRAIN + TEST, 2, generator=rng)
    train, test = (
        Labelled(part.flatten(0, 1), torch.arange(CLUSTERS).repeat_interleave(part.shape[1]))
        for part in x.split([TRAIN, TEST], dim=1)
    )
    return train, test


def train_embedding(loss: Loss, train: Labelled, seed: int, epochs: int) -> Embedding:
    """Train a small network on the points and clusters, and return its unit vectors.

    Raises:
        UserError: the loss diverged.
    """
    device = train.x.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            *(nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()),
            nn.Linear(HIDDEN, EMBEDDING_DIM),
        ).to(device)
        loss.prepare(CLUSTERS, EMBEDDING_DIM)
    groups = [{"params": [*network.parameters()]}, *loss.to(device).parameter_groups()]
    optimizer = torch.optim.Adam(groups, LR)
    for epoch in range(epochs):
        order = torch.randperm(
            len(train.y), generator=generator(device, seed, epoch), device=device
        )
        for batch in order.split(BATCH):
            rows = with_mates(batch, train.y)
            optimizer.zero_grad()
            loss(same_class(network(train.x[rows]), None, train.y[rows])).backward()
            optimizer.step()
    if not bool(network(train.x).isfinite().all()):
        raise UserError(f"{loss.name} diverged: change one of its parameters with --set")
    return lambda x: unit(network(x).detach())


def with_mates(rows: Tensor, labels: Tensor) -> Tensor:
    """Return the rows whose cluster has another one among them: a point alone has no positive.

    >>> with_mates(torch.tensor([3, 0, 1]), torch.tensor([5, 7, 7, 5]))
    tensor([3, 0])
    """
    y = labels[rows]
    return rows[(y.unsqueeze(1) == y).sum(dim=1) > 1]


def scores(
    embedding: Embedding | None, train: Labelled, test: Labelled, neighbours: Sequence[int]
) -> MeasuredScores:
    """Accuracies in percent, and how far from alike the differences of embeddings are."""
    found: MeasuredScores = {}
    if embedding:
        found["variation of test differences", "all"] = variation(embedding, test)
        train, test = (part._replace(x=embedding(part.x)) for part in (train, test))
    for k in neighbours:
        model = KNeighborsClassifier(k).fit(train.x.cpu().numpy(), train.y.cpu().numpy())
        for part, rows in (("training", train), ("test", test)):
            right = torch.from_numpy(model.predict(rows.x.cpu().numpy())) == rows.y.cpu()
            by_cluster = (100 * right.view(CLUSTERS, -1).double().mean(dim=1)).tolist()
            found |= {(f"{part}, k = {k}", str(c)): x for c, x in enumerate(by_cluster, 1)}
            found[f"{part}, k = {k}", "average"] = sum(by_cluster) / CLUSTERS
    return found


def variation(embedding: Embedding, test: Labelled) -> float:
    """The cross-total variation of test points in turn of each cluster, one next to the other."""
    order = torch.arange(len(test.y)).view(CLUSTERS, -1).T.flatten().to(test.y.device)
    return float(DAR()(same_class(embedding(test.x[order]), None, test.y[order])))


def plot(seed: int) -> Figure:
    """Plot each case: its training points, and the aligned differences of two clusters."""
    title = "Clusters with differences that are alike or not, as Figure 2 of DASL"
    drawing, panels = figure(title, 2 * len(CASES), columns=len(CASES))
    pictures = zip(CASES.items(), panels, panels[len(CASES) :], strict=False)
    for (name, case), above, below in pictures:
        x = draw_points(case, seed)[0].x.view(CLUSTERS, TRAIN, 2)
        for k, cluster in enumerate(x):
            x_axis, y_axis = cluster.T.tolist()
            above.scatter(
                x_axis, y_axis, s=1, color=COLORS[k], label=f"cluster {k + 1}", rasterized=True
            )
        above.set_title(name, fontsize=8)
        above.set_aspect("equal", "datalim")
        plot_differences(below, x, case)
    shared_legend(drawing, panels[0])
    return drawing


def plot_differences(axes: Axes, x: Tensor, case: ClusterCase) -> None:
    """How the lengths, or the directions, of differences between two clusters are distributed."""
    for (i, j), line in zip(((0, 1), (1, 2), (0, 2)), ("-", "--", ":"), strict=True):
        between = x[i] - x[j]
        angle = torch.atan2(between[:, 1], between[:, 0]).rad2deg() % 180
        shown = between.norm(dim=1) if case.alike == "distance" else (angle + 90) % 180 - 90
        axes.hist(
            shown.tolist(), 40, histtype="step", ls=line, color="black", label=f"{i + 1}, {j + 1}"
        )
    axes.set_xlabel(f"{case.alike} of differences{' in degrees' * (case.alike == 'direction')}")
    axes.legend(fontsize=6, frameon=False)
