"""Measure graph training for `bench perf graph`.

The table shows where an epoch and an evaluation spend their time.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from contrastbench.benchmarks.perf.timing import CPU, medians, table_head
from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.domains.scoring.svm import C_GRID, INNER_FOLDS, svm_folds
from contrastbench.losses import get_loss

DEFAULT = ("MUTAG", "PROTEINS", "NCI1")
REPEATS = 5


def report(datasets: list[str], root: Path | None, device: torch.device = CPU) -> Iterator[str]:
    """Yield a Markdown table, a line at a time.

    Epochs as medians of five, one thread; what scikit-learn does is on the CPU.
    """
    torch.set_num_threads(GraphDomain.threads)
    times = "views | forward + backward | epoch | views / epoch | epoch / (f + b)"
    yield table_head(f"set | {times} | GridSearchCV(SVC()) | ours | ratio | same folds")
    for name in datasets:
        recipe = GraphRecipe(augmentation="random4")
        domain = GraphDomain(name, recipe, 0, root, device)
        views, passes, epoch = epoch_times(domain, recipe)
        plain, ours, same = evaluation_times(domain, recipe)
        ratios = f"{views / epoch:.0%} | {epoch / passes:.2f}"
        times = f"{views * 1e3:.1f} ms | {passes * 1e3:.1f} ms | {epoch * 1e3:.1f} ms"
        scoring = f"{plain:.2f} s | {ours:.2f} s | {plain / ours:.1f} | {same}"
        yield f"| {name} | {times} | {ratios} | {scoring} |"


def epoch_times(domain: GraphDomain, recipe: GraphRecipe) -> list[float]:
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

    works = [lambda: list(domain.batches(0)), passes, epoch]
    return medians(works, REPEATS, domain.device)


def evaluation_times(domain: GraphDomain, recipe: GraphRecipe) -> tuple[float, float, str]:
    """Seconds of scikit-learn's search and of ours, and how many folds agree."""
    with torch.no_grad():
        x = domain.model().encoder.eval()(domain.graphs).cpu().numpy()
    y = domain.graphs.y.cpu().numpy()
    start = time.perf_counter()
    ours = [fold.accuracy for fold in svm_folds(x, y, recipe.folds)]
    middle = time.perf_counter()
    search = GridSearchCV(SVC(), {"C": list(C_GRID)}, cv=INNER_FOLDS)
    draws = StratifiedKFold(recipe.folds, shuffle=True, random_state=0)
    plain = 100 * cross_val_score(search, x, y, cv=draws)
    end = time.perf_counter()
    same = sum(abs(a - b) < 1e-9 for a, b in zip(plain, ours, strict=True))
    return end - middle, middle - start, f"{same} of {recipe.folds}"
