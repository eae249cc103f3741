"""A loss's score over two of its parameters, from records alone: Figure 5 of AttentionNCE."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contrastbench.benchmarks.analyses import output
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.plots import figure
from contrastbench.benchmarks.comparison.statistics import mean_std
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError, unknown
from contrastbench.losses.spec import LossSpec

ParameterGrid = Mapping[str, Sequence[Any]]  # two parameters of the loss, with their values


class Square(NamedTuple):
    """The recorded scores at one pair of values."""

    values: tuple[Any, Any]
    metric: str  # empty without records
    scores: list[float]  # of the seeds that are asked for and have one


def run(work: Work) -> Iterator[Path | str]:
    """Do what `bench analyse heatmap` asks for."""
    (loss,) = work.losses
    cell = replace(work.experiment, loss=loss)
    return analyse(cell, work.values, work.seeds, work.options.results, work.folder)


def analyse(
    work: Experiment, grid: ParameterGrid, seeds: Sequence[int], results: Path, folder: Path
) -> Iterator[Path | str]:
    """Read the squares, write and draw them, and say what would fill those that lack seeds.

    Raises:
        UserError: the grid is not two parameters of the loss, or there is no record.
    """
    check_grid_params(work, grid)
    squares = read_squares(work, grid, seeds, results)
    sweep = folder / "heatmap.yaml"
    sweep.write_text(
        yaml.safe_dump(missing_sweep(work, grid, seeds), sort_keys=False), encoding="utf-8"
    )
    metric = next((filled.metric for filled in squares if filled.metric), None)
    if metric is None:
        raise UserError(f"no records of {work.label} on this grid: bench sweep {sweep} runs it")
    columns = (*grid, f"{metric}_mean", f"{metric}_std", "n", "seeds_asked_for")
    rows = [
        (*filled.values, *mean_and_std(filled.scores), len(filled.scores), len(seeds))
        for filled in squares
    ]
    yield from output.write_results(
        folder, "heatmap", columns, rows, plot(work, grid, squares, seeds, metric)
    )
    missing = sum(len(filled.scores) < len(seeds) for filled in squares)
    if missing:
        yield (
            f"{missing} of {len(squares)} squares lack seeds: bench sweep {sweep} runs what is "
            "missing"
        )


def grid_points(grid: ParameterGrid) -> list[tuple[Any, Any]]:
    """All pairs of values, the first parameter's values outside."""
    first, second = grid.values()
    return [(a, b) for a in first for b in second]


def check_grid_params(work: Experiment, grid: ParameterGrid) -> None:
    """Raise unless the grid is of two parameters of the loss that are not fixed."""
    if len(grid) != 2:
        raise UserError(f"a heatmap needs two options --with KEY=V1,V2,..., got {len(grid)}")
    for key in grid:
        if key not in LossSpec(work.loss.name).complete.params:
            raise unknown(
                f"parameter of {work.loss.name}", key, LossSpec(work.loss.name).complete.params
            )
        if key in work.loss.params:
            raise UserError(f"{key} is in --with and in --set: leave one out")


def read_squares(
    work: Experiment, grid: ParameterGrid, seeds: Sequence[int], results: Path
) -> list[Square]:
    """Read the records of all squares, on the data that most of them share."""
    found = []
    for values in grid_points(grid):
        params = {**work.loss.params, **dict(zip(grid, values, strict=True))}
        of_square = replace(work, loss=LossSpec(work.loss.name, params))
        found.append(of_square.ok_by_data(results))
    counts = Counter(data_hash for by_data in found for data_hash in by_data)
    data = max(counts, key=lambda data_hash: counts[data_hash], default="")
    return [
        square(values, by_data.get(data, {}), seeds)
        for values, by_data in zip(grid_points(grid), found, strict=True)
    ]


def square(values: tuple[Any, Any], by_seed: dict[int, Record], seeds: Sequence[int]) -> Square:
    """The scores of those values by the records."""
    records = [by_seed[seed] for seed in seeds if seed in by_seed]
    scores = [record["metrics"][record["main"]] for record in records]
    return Square(values, records[0]["main"] if records else "", scores)


def mean_and_std(scores: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of the scores, or (None, None) without scores."""
    return mean_std(scores) if scores else (None, None)


def missing_sweep(work: Experiment, grid: ParameterGrid, seeds: Sequence[int]) -> dict[str, Any]:
    """Return a sweep file that runs the missing cells of the grid."""
    return {
        "title": f"{' x '.join(grid)} of {work.label}",
        "seeds": list(seeds),
        "domains": {work.domain: {"datasets": [work.dataset], "recipe": work.recipe}},
        "losses": [{work.loss.name: work.loss.params}],
        "grid": {key: list(values) for key, values in grid.items()},
    }


def plot(
    work: Experiment,
    grid: ParameterGrid,
    squares: Sequence[Square],
    seeds: Sequence[int],
    metric: str,
) -> Figure:
    """The means as colours and numbers; where seeds are lacking their number is said."""
    (rows, down), (columns, across) = grid.items()
    means = np.array([mean_and_std(filled.scores)[0] for filled in squares], dtype=float).reshape(
        len(down), len(across)
    )
    drawing, (axes,) = figure(work.label, 1)
    drawing.set_size_inches(1.9 + 0.75 * len(across), 1.5 + 0.45 * len(down))
    image = axes.imshow(means, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(across)), [str(value) for value in across])
    axes.set_yticks(range(len(down)), [str(value) for value in down])
    axes.set_xlabel(columns, parse_math=False)
    axes.set_ylabel(rows, parse_math=False)
    axes.invert_yaxis()
    names = ", ".join(map(str, seeds))
    drawing.colorbar(image, label=f"{metric} in percent, seed{'s' * (len(seeds) > 1)} {names}")
    middle = (np.nanmin(means) + np.nanmax(means)) / 2
    for place, filled in enumerate(squares):
        write_number(axes, divmod(place, len(across)), filled.scores, len(seeds), middle)
    return drawing


def write_number(
    axes: Axes, place: tuple[int, int], scores: Sequence[float], wanted: int, middle: float
) -> None:
    """The mean in its square, white where the colour is dark."""
    mean, _ = mean_and_std(scores)
    text = (
        "missing"
        if mean is None
        else f"{mean:.2f}" + (f"\nn = {len(scores)}" if len(scores) < wanted else "")
    )
    color = "white" if mean is not None and mean < middle else "black"
    axes.text(place[1], place[0], text, ha="center", va="center", color=color, fontsize=8)
