"""Optimizers and schedules by name."""

import pytest
import torch
from torch import nn

from contrastbench.benchmarks.optimizers import make_optimizer, make_schedule
from contrastbench.domains.recipes import GraphRecipe


def test_the_recipe_names_the_optimizer() -> None:
    trained, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
    adam = make_optimizer(GraphRecipe(weight_decay=1e-6), [trained, frozen])
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["params"] == [trained]
    assert (adam.param_groups[0]["lr"], adam.param_groups[0]["weight_decay"]) == (0.01, 1e-6)
    sgd = make_optimizer(GraphRecipe(optimizer="sgd", lr=0.3, momentum=0.8), [trained])
    assert isinstance(sgd, torch.optim.SGD)
    assert (sgd.param_groups[0]["lr"], sgd.param_groups[0]["momentum"]) == (0.3, 0.8)


@pytest.mark.parametrize(("schedule", "expected"), [("constant", [2, 2, 2, 2]), ("cosine", [2, 1.5, 0.5, 0])])
def test_the_learning_rate_follows_the_schedule(schedule: str, expected: list[float]) -> None:
    recipe = GraphRecipe(lr=2.0, schedule=schedule)
    optimizer = make_optimizer(recipe, [nn.Parameter(torch.ones(1))])
    rates = make_schedule(recipe, optimizer, 3)
    seen = []
    for _ in range(4):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        rates.step()
    assert seen == pytest.approx(expected)
