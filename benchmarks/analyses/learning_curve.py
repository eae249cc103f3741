"""The score by epoch: Figure 4 of ADNCE.

Every cell is one that `bench run` makes, scored on the way; what is recorded is not trained again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.errors import UserError, tell
from contrastbench.losses.spec import LossSpec


class EpochScores(NamedTuple):
    """The scores of some seeds after an epoch; 0 is the untrained encoder."""

    epoch: int
    scores: list[float]


class ScoreCurve(NamedTuple):
    """The scores of one loss by epoch."""

    label: str
    points: list[EpochScores]


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse learning-curve` asks for."""
    every, options = work.values["every"], work.options
    return analyse(work.experiment, work.losses, every, work.seeds, options, work.folder)


def analyse(
    work: Experiment,
    methods: Sequence[LossSpec],
    every: int,
    seeds: Sequence[int],
    options: Options,
    folder: Path,
) -> Iterator[Path]:
    """Train the missing cells, score them every few epochs, write and draw.

    Raises:
        UserError: nothing is trained, or nothing came to its end.
    """
    epochs = work.full_recipe.epochs
    if not work.full_recipe.trainable or epochs == 0:
        raise UserError("this recipe trains nothing: give it epochs of at least 1")
    on_the_way = list(range(every, epochs, every))
    metric, start = seed_metrics(replace(work, loss=LossSpec("none")), seeds, options)
    names = {**{epoch: f"{metric}@{epoch}" for epoch in on_the_way}, epochs: metric}
    curves = []
    for method in methods:
        scored = replace(work, loss=method, recipe={**work.recipe, "score_at": on_the_way})
        _, found = seed_metrics(scored, seeds, options)
        points = [EpochScores(at, [metrics[key] for metrics in found]) for at, key in names.items()]
        begin = EpochScores(0, [metrics[metric] for metrics in start])
        curves += [ScoreCurve(method.label, [begin, *points])] if found else []
    if not curves:
        raise UserError("no training came to its end: the lines above say why")
    rows = [
        (curve.label, point.epoch, *mean_std(point.scores), len(point.scores))
        for curve in curves
        for point in curve.points
    ]
    columns = ("loss", "epoch", f"{metric}_mean", f"{metric}_std", "n")
    title = f"{work.domain} {work.dataset}, {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    yield from output.write_results(
        folder, "learning-curve", columns, rows, plot(curves, metric, title)
    )


def seed_metrics(
    work: Experiment, seeds: Sequence[int], options: Options
) -> tuple[str, list[dict[str, float]]]:
    """Return the main metric's name, and all metrics of the seeds that finished."""
    known = work.ok_by_seed(options.results)  # scored after these epochs, and perhaps after more
    # where a seed lacks, all are of the data that are there now: others are never mixed with them
    there = all(seed in known for seed in seeds)
    records = [known[seed] if there else run_cell(work, seed, options)[0] for seed in seeds]
    for record in records:
        if record["status"] != "ok":
            seed, error = record["seed"], record["details"]["error"]
            tell(f"{work.label} seed {seed}: {record['status']}, {error}")
    good = [record for record in records if record["status"] == "ok"]
    return (good[0]["main"] if good else ""), [record["metrics"] for record in good]


def plot(curves: Sequence[ScoreCurve], metric: str, title: str) -> Figure:
    """A line for each loss, a band of one standard deviation where there are seeds."""
    drawing, (axes,) = figure(title, 1)
    for curve in curves:
        x = [point.epoch for point in curve.points]
        means, stds = zip(*(mean_std(point.scores) for point in curve.points), strict=True)
        (line,) = axes.plot(x, means, marker="o", label=curve.label)
        mean, std = np.array(means), np.array([value or 0.0 for value in stds])
        axes.fill_between(x, mean - std, mean + std, color=line.get_color(), alpha=0.15, lw=0)
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"{metric} in percent", parse_math=False)
    shared_legend(drawing, axes, columns=2)
    return drawing
