"""Optimizers and schedules by name."""

import math

import pytest
import torch
from torch import nn

from contrastbench.benchmarks.running.optimizers import (
    load_moments,
    make_optimizer,
    make_schedule,
    moments_of,
)
from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.image import ImageRecipe


def test_the_recipe_names_the_optimizer() -> None:
    trained, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
    adam = make_optimizer(GraphRecipe(weight_decay=1e-6), [trained, frozen])
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["params"] == [trained]
    assert (adam.param_groups[0]["lr"], adam.param_groups[0]["weight_decay"]) == (0.01, 1e-6)
    sgd = make_optimizer(GraphRecipe(optimizer="sgd", lr=0.3, momentum=0.8), [trained])
    assert isinstance(sgd, torch.optim.SGD)
    assert (sgd.param_groups[0]["lr"], sgd.param_groups[0]["momentum"]) == (0.3, 0.8)


@pytest.mark.parametrize(
    ("schedule", "expected"), [("constant", [2, 2, 2, 2]), ("cosine", [2, 1.5, 0.5, 0])]
)
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


def test_lars_is_the_loop_of_its_paper() -> None:
    """You et al. 2017 with MoCo v3's exceptions, a weight and a step at a time, in Python."""
    lr, momentum, decay, trust = 0.7, 0.9, 0.1, 1e-3
    draw = torch.Generator().manual_seed(0)
    weights = [
        nn.Parameter(torch.randn(shape, generator=draw, dtype=torch.float64))
        for shape in ((3, 2), (3,))
    ]
    weights.append(
        nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
    )  # of length zero: not scaled
    recipe = ImageRecipe(optimizer="lars", lr=lr, momentum=momentum, weight_decay=decay)
    optimizer = make_optimizer(recipe, weights)
    values = [w.detach().flatten().tolist() for w in weights]
    velocity = [[0.0] * len(v) for v in values]
    for _ in range(3):
        gradients = [torch.randn(w.shape, generator=draw, dtype=w.dtype) / 99 for w in weights]
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()
        for k, gradient in enumerate(g.flatten().tolist() for g in gradients):
            matrix = weights[k].ndim > 1
            g = (
                [a + decay * w for a, w in zip(gradient, values[k], strict=True)]
                if matrix
                else gradient
            )
            lengths = math.hypot(*values[k]), math.hypot(*g)
            rate = trust * lengths[0] / lengths[1] if matrix and all(lengths) else 1.0
            velocity[k] = [momentum * v + rate * a for v, a in zip(velocity[k], g, strict=True)]
            values[k] = [w - lr * v for w, v in zip(values[k], velocity[k], strict=True)]
        for weight, expected in zip(weights, values, strict=True):
            assert weight.flatten().tolist() == pytest.approx(expected, rel=1e-12)


def test_lars_leaves_a_weight_without_an_update() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    weight.grad = torch.zeros(2, 2)
    make_optimizer(ImageRecipe(optimizer="lars", lr=1.0, weight_decay=0.0), [weight]).step()
    assert weight.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("done", [0, 1, 3])
def test_the_learning_rate_rises_before_it_falls(done: int) -> None:
    recipe = ImageRecipe(lr=2.0, schedule="cosine", epochs=4, warmup=2)
    optimizer = make_optimizer(recipe, [nn.Parameter(torch.ones(1))])
    rates = make_schedule(recipe, optimizer, 8, done)
    seen = []
    for _ in range(done, 9):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        rates.step()
    fall = [1 + math.cos(math.pi * step / 4) for step in range(5)]
    assert seen == pytest.approx([0, 0.5, 1, 1.5, *fall][done:])


def test_moments_are_laid_out_as_their_parameters() -> None:
    weight = nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))
    recipe = ImageRecipe(optimizer="adam")
    trained, resumed = (make_optimizer(recipe, [weight]) for _ in range(2))
    weight.grad = torch.ones_like(weight)
    trained.step()
    before = moments_of(trained)
    load_moments(resumed, {name: moment.clone().contiguous() for name, moment in before.items()})
    for name, moment in moments_of(resumed).items():
        assert torch.equal(moment, before[name])
        assert (moment.shape, moment.stride()) == (before[name].shape, before[name].stride())
