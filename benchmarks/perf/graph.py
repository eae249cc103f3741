"""Measure graph training for `bench perf graph`.

The first table shows where an epoch and an evaluation spend their time. The second compares the
compiled solver of SVMs with libsvm: its time, and each of its predictions.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from contrastbench.benchmarks.perf.timing import CPU, run_seconds
from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.domain import GraphDomain, Model
from contrastbench.domains.progress import Progress
from contrastbench.domains.scoring.svm import (
    C_GRID,
    INNER_FOLDS,
    by_libsvm,
    pair_values,
    squared_distances,
    svm_folds,
    votes,
)
from contrastbench.losses import get_loss

DEFAULT = ("MUTAG", "PROTEINS", "NCI1")
REPEATS = 5
Array = np.ndarray[Any, np.dtype[Any]]


def report(
    datasets: list[str], data_root: Path | None, device: torch.device = CPU
) -> Iterator[str]:
    """Yield two Markdown tables, a line at a time.

    Epochs as medians of five, one thread; what scikit-learn does is on the CPU.
    """
    torch.set_num_threads(GraphDomain.threads)
    yield from epochs(datasets, data_root, device)
    yield ""
    yield from solvers(datasets, data_root, device)


def epochs(datasets: list[str], data_root: Path | None, device: torch.device) -> Iterator[str]:
    """Yield the table of epochs and evaluations."""
    yield (
        "| set | views | forward + backward | epoch | views / epoch | epoch / (f + b) | "
        "GridSearchCV(SVC()) | ours | ratio | same folds |"
    )
    yield "| --- |" + " ---: |" * 9
    for name in datasets:
        recipe = GraphRecipe(augmentation="random4")
        domain = GraphDomain(name, recipe, 0, data_root, device)
        views, passes, epoch = epoch_times(domain, recipe)
        plain, ours, same = evaluation_times(domain, recipe)
        ratios = f"{views / epoch:.0%} | {epoch / passes:.2f}"
        times = f"{views * 1e3:.1f} ms | {passes * 1e3:.1f} ms | {epoch * 1e3:.1f} ms"
        yield (
            f"| {name} | {times} | {ratios} | {plain:.2f} s | {ours:.2f} s | "
            f"{plain / ours:.1f} | {same} |"
        )


def epoch_times(domain: GraphDomain, recipe: GraphRecipe) -> tuple[float, float, float]:
    """Seconds for an epoch's views, for the encoder's two passes over them, and for it all."""
    model, loss = domain.model().train(), get_loss("adnce", temperature=0.2)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.lr, fused=True)
    batches = list(domain.batches(0))

    def passes() -> None:
        for graphs, views, _ in batches:
            (model(graphs).sum() + model(views, symmetric=False).sum()).backward()

    def epoch() -> None:
        for batch in domain.batches(0):
            optimizer.zero_grad()
            loss(domain.contrasts(model, batch)[0]).backward()
            optimizer.step()

    works: list[Callable[[], Any]] = [lambda: list(domain.batches(0)), passes, epoch]
    run_seconds(epoch, domain.device)  # the first one imports and allocates
    rounds = [[run_seconds(work, domain.device) for work in works] for _ in range(REPEATS)]
    views, both, whole = (median(column) for column in zip(*rounds, strict=True))
    return views, both, whole


def evaluation_times(domain: GraphDomain, recipe: GraphRecipe) -> tuple[float, float, str]:
    """Seconds of scikit-learn's search and of ours, and how many folds agree."""
    with torch.no_grad():
        x = domain.model().encoder.eval()(domain.graphs).cpu().numpy()
    y = domain.graphs.y.cpu().numpy()
    start = time.perf_counter()
    ours = svm_folds(x, y, recipe.folds).accuracy
    middle = time.perf_counter()
    plain = grid_search(x, y, recipe.folds)
    end = time.perf_counter()
    same = sum(abs(a - b) < 1e-9 for a, b in zip(plain, ours, strict=True))
    return end - middle, middle - start, f"{same} of {recipe.folds}"


def solvers(datasets: list[str], data_root: Path | None, device: torch.device) -> Iterator[str]:
    """Yield the table of solvers: seconds of the processor, on the same parts in turn.

    Every part of the data that is fitted in a cell is fitted for every C. The cell is the training,
    where there is one, and the SVMs. Starting a process and reading the data are not in it.
    """
    yield (
        "| set | features | training | SVMs by libsvm | SVMs compiled | ratio | "
        "ratio of the cell | equal predictions |"
    )
    yield "| --- | --- |" + " ---: |" * 6
    for name in datasets:
        for features in ("raw", "untrained", "trained"):
            recipe = GraphRecipe(
                augmentation="random4", encoder="raw" if features == "raw" else "gin"
            )
            domain = GraphDomain(name, recipe, 0, data_root, device)
            model = domain.model()
            training = train_seconds(domain, model) if features == "trained" else 0.0
            x, y = (part.cpu().numpy() for part in domain.embeddings(model))
            libsvm, compiled, equal, total = solver_times(x.astype(np.float64), y, recipe.folds)
            cell = (training + libsvm) / (training + compiled)
            yield (
                f"| {name} | {features} | {training:.2f} s | {libsvm:.2f} s | {compiled:.2f} s | "
                f"{libsvm / compiled:.2f} | {cell:.2f} | {equal} of {total} |"
            )


def train_seconds(domain: GraphDomain, model: Model) -> float:
    """Train a model by InfoNCE; return the processor's seconds."""
    start = time.process_time()
    loss = get_loss("infonce")
    optimizer = torch.optim.Adam(model.train().parameters(), lr=domain.recipe.lr, fused=True)
    with Progress(domain.recipe.epochs, "epochs") as progress:
        for epoch in range(domain.recipe.epochs):
            for batch in domain.batches(epoch):
                optimizer.zero_grad()
                loss(domain.contrasts(model, batch)[0]).backward()
                optimizer.step()
            progress.step()
    return time.process_time() - start


def solver_times(x: Array, y: Array, folds: int) -> tuple[float, float, int, int]:
    """Processor seconds of libsvm and of the compiled solver, equal predictions, and all."""
    distance, parts = squared_distances(x), fitted_parts(x, y, folds)
    seconds, equal, total = {by_libsvm: 0.0, pair_values: 0.0}, 0, 0
    pair_values(x, y, distance, *parts[0], C_GRID[:1])  # the first call loads the solver
    with Progress(len(parts), "fits") as progress:
        for turn, part in enumerate(parts):
            found = {}
            for solve in list(seconds)[:: 1 if turn % 2 else -1]:  # each is first as often
                start = time.process_time()
                found[solve] = votes(solve(x, y, distance, *part, C_GRID)).argmax(axis=-1)
                seconds[solve] += time.process_time() - start
            equal += int((found[by_libsvm] == found[pair_values]).sum())
            total += found[pair_values].size
            progress.step()
    return seconds[by_libsvm], seconds[pair_values], equal, total


def fitted_parts(x: Array, y: Array, folds: int) -> list[tuple[Array, Array]]:
    """Return the samples that fit and those that are predicted: of each fold, inner and outer."""
    found = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(x, y):
        inner = StratifiedKFold(INNER_FOLDS).split(train, y[train])
        found += [(train[fit], train[held]) for fit, held in inner] + [(train, test)]
    return found


def grid_search(x: Array, y: Array, folds: int) -> list[float]:
    """Accuracy in percent on each fold, by scikit-learn alone."""
    accuracy = []
    with Progress(folds, "GridSearchCV") as progress:
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(x, y):
            search = GridSearchCV(SVC(), {"C": list(C_GRID)}, cv=INNER_FOLDS).fit(
                x[train], y[train]
            )
            accuracy.append(100 * search.score(x[test], y[test]))
            progress.step()
    return accuracy
