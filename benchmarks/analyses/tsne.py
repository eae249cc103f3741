"""t-SNE panels of embeddings before and after training: Figure 4 of AttentionNCE."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from sklearn.manifold import TSNE
from torch import Tensor

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.trainer import Trainer, trainer_of, training_loss
from contrastbench.benchmarks.running.training import Diverged
from contrastbench.domains.random import generator
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

PERPLEXITY = 30  # scikit-learn's default
MAX_LEGEND_CLASSES = 20  # classes: more colours cannot be told apart
POINT_COLUMNS = ("encoder", "row", "class", "x", "y")


class Panel(NamedTuple):
    """The plane of one encoder's embeddings."""

    label: str
    rows: Tensor  # (n,) numbers of the samples
    y: Tensor  # (n,) their classes
    plane: Tensor  # (n, 2)


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse tsne` asks for."""
    return analyse(trainer_of(work), work.losses, work.values["points"], work.folder)


def analyse(
    trainer: Trainer, methods: Sequence[LossSpec], points: int, folder: Path
) -> Iterator[Path]:
    """Embed the scored samples by the untrained encoder and by each trained one."""
    embeddings = trainer.with_classes.embeddings
    losses = [("untrained", None)] + [(m.label, training_loss(m)) for m in methods]
    panels = []
    for name, loss in losses:
        try:
            x, y = embeddings(trainer.train(loss))
        except Diverged as error:
            raise UserError(
                f"{name}: {error}: leave it out or change its temperature or learning rate"
            ) from None
        rows = plotted_rows(len(y), points, trainer.seed)
        panels.append(Panel(name, rows, y.cpu()[rows], plane(x.cpu()[rows], trainer.seed)))
    title = f"t-SNE of embeddings: {trainer.title}"
    yield from output.write_results(
        folder, "tsne", POINT_COLUMNS, point_rows(panels), plot(panels, title)
    )


def plotted_rows(samples: int, points: int, seed: int) -> Tensor:
    """The numbers of at most so many samples, the same for every encoder."""
    order = torch.randperm(samples, generator=generator(torch.device("cpu"), seed))
    return order[:points].sort().values


def plane(x: Tensor, seed: int) -> Tensor:
    """(n, 2) t-SNE of (n, d) embeddings (van der Maaten and Hinton 2008) by scikit-learn."""
    if len(x) < 5:
        raise UserError(
            f"t-SNE needs at least 5 samples, got {len(x)}: give a larger --with points= or limit"
        )
    perplexity = min(PERPLEXITY, (len(x) - 1) / 3)
    return torch.from_numpy(
        TSNE(perplexity=perplexity, random_state=seed).fit_transform(x.float().numpy())
    )


def point_rows(panels: Sequence[Panel]) -> Iterator[tuple[str, int, int, float, float]]:
    """A row for each point."""
    for name, rows, classes, points in panels:
        for row, y, (a, b) in zip(rows.tolist(), classes.tolist(), points.tolist(), strict=True):
            yield name, row, y, a, b


def plot(panels: Sequence[Panel], title: str) -> Figure:
    """A panel for each encoder, coloured by class; its axes have no meaning and so no ticks."""
    drawing, grid = figure(title, len(panels), square=True)
    classes = panels[0].y.unique().tolist()
    colors = colormaps["tab10" if len(classes) <= 10 else "turbo"].resampled(max(10, len(classes)))
    for axes, panel in zip(grid, panels, strict=True):
        for k, y in enumerate(classes):
            first, second = panel.plane[panel.y == y].T
            axes.scatter(first, second, s=4, linewidths=0, color=colors(k), label=str(y))
        axes.set_title(panel.label, fontsize=9, parse_math=False)
        axes.set(xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
    if len(classes) <= MAX_LEGEND_CLASSES:
        shared_legend(drawing, grid[0], "class", columns=10)
    return drawing
