"""Measure tabular training for `bench perf tabular`.

What views add to the step of the model alone, measured side by side in one run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from contrastbench.benchmarks.perf.timing import CPU, medians, table_head
from contrastbench.benchmarks.running.training import step_loss
from contrastbench.domains.random import generator
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.domains.tabular.domain import Batch, TabularDomain
from contrastbench.domains.tabular.views import two_views
from contrastbench.losses import get_loss

DEFAULT = ("digits-table", "breast_cancer")
VIEWS = ("masking", "corruption", "masking+corruption")
STEPS = 40


def report(datasets: list[str], root: Path | None, device: torch.device = CPU) -> Iterator[str]:
    """A Markdown table, a line at a time.

    Milliseconds, medians of alternating steps, one thread.
    """
    torch.set_num_threads(TabularDomain.threads)
    times = "making them | model alone | row by row | model + ours | model + row by row"
    yield table_head(f"set | views | {times}", 2)
    for name in datasets:
        for views in VIEWS:
            recipe = cast(TabularRecipe, make_recipe("tabular", {"views": views}))
            domain, plain = (
                TabularDomain(name, variant, 0, root, device)
                for variant in (recipe, recipe.but(views="none"))
            )
            model, ours, rows = (1e3 * seconds for seconds in step_times(domain, plain, recipe))
            times = f"{ours:.2f} ms | {model:.2f} ms | {rows:.2f} ms"
            ratios = f"{(model + ours) / model:.3f} | {(model + rows) / model:.3f}"
            yield f"| {name} | {views} | {times} | {ratios} |"


def step_times(domain: TabularDomain, plain: TabularDomain, recipe: TabularRecipe) -> list[float]:
    """Seconds of a step without views, of a batch's views, and of the same row by row."""
    model, loss = domain.model().train(), get_loss("infonce")
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.lr, momentum=0.9, fused=True)
    rows = torch.arange(recipe.batch_size, device=domain.device)
    rng = generator(domain.device, 0)

    def step() -> None:
        optimizer.zero_grad()
        step_loss(loss, plain.contrasts(model, Batch(rows, rng))).backward()
        optimizer.step()

    def views(part: Tensor) -> tuple[Tensor, Tensor]:
        rng = generator(domain.device, 0)
        return two_views(domain.data["train"].x, part, domain.features, recipe, rng)

    works = [step, lambda: views(rows), lambda: [views(row) for row in rows.split(1)]]
    return medians(works, STEPS, domain.device)
