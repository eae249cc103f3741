"""The perceptron's shapes, and the target network that follows it."""

import math

import pytest
import torch
from torch import nn

from contrastbench.domains.registry import make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.domains.tabular.encoder import Maxout, TabularModel, perceptron

SMALL = {"widths": (8, 12), "projection": (6, 5), "maxout": 3}


def model(steps: int = 10, **recipe: object) -> TabularModel:
    torch.manual_seed(0)
    return TabularModel(7, TabularRecipe(**SMALL | recipe), steps)


def move(net: nn.Module) -> None:
    """What a training step does, in kind."""
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter))


def test_maxout_is_the_largest_of_its_sets() -> None:
    x = torch.randn(5, 12)
    expected = torch.stack([x[:, [j, j + 3, j + 6, j + 9]].amax(dim=1) for j in range(3)], dim=1)
    assert torch.equal(Maxout(4)(x), expected)


def test_the_papers_network() -> None:
    recipe = make_recipe("tabular", {"preset": "renyicl"})
    with torch.device("meta"):
        net = TabularModel(54, recipe, 1)
        assert net.encoder(torch.empty(2, 54)).shape == (2, 2048)
        assert net(torch.empty(2, 54)).shape == (2, 128)
    linear = [m for m in net.encoder if isinstance(m, nn.Linear)]
    assert [m.out_features for m in linear] == [2048, 2048, 4096, 4096, 8192]
    assert [type(m).__name__ for m in net.encoder][-5:] == [
        "Linear",
        "BatchNorm1d",
        "ReLU",
        "Linear",
        "Maxout",
    ]
    assert [m.out_features for m in net.projector if isinstance(m, nn.Linear)] == [2048, 128]


def test_scarfs_network_is_plain() -> None:
    net = perceptron([7, 4, 4], batch_norm=False, maxout=1)
    assert [type(m).__name__ for m in net] == ["Linear", "ReLU", "Linear", "ReLU"]
    assert not hasattr(model(pairing="one_way"), "target")
    assert isinstance(model(pairing="both_views").predictor, nn.Identity)


def test_the_target_starts_as_a_copy_and_follows_by_its_momentum() -> None:
    net = model(ema=0.9, steps=4)
    expected = [p.clone() for p in net.online.parameters()]
    for step in range(4):
        move(net)
        net.update_target()
        m = 1 - 0.1 * (math.cos(math.pi * step / 4) + 1) / 2  # MoCo v3's
        expected = [
            m * t + (1 - m) * o.detach()
            for t, o in zip(expected, net.online.parameters(), strict=True)
        ]
        for target, wanted in zip(net.target.parameters(), expected, strict=True):
            assert torch.allclose(target, wanted, atol=1e-6)
    assert net.momentum_now() == pytest.approx(1.0)
    net.update_target()
    assert net.momentum_now() == 1.0, "past the end it stands still"


def test_a_momentum_of_zero_stays_so_that_the_target_is_the_network() -> None:
    """SimSiam's: one network, whose gradient stops on one side."""
    net = model(ema=0.0, steps=4)
    for _ in range(5):
        move(net)
        net.update_target()
    assert net.momentum_now() == 0.0
    for target, online in zip(net.target.parameters(), net.online.parameters(), strict=True):
        assert torch.equal(target, online)


def test_the_state_holds_all_that_goes_on() -> None:
    net, other = model(), model()
    net.update_target()
    move(net)
    other.load_state_dict(net.state_dict())
    assert other.momentum_now() == net.momentum_now() != model().momentum_now()
    x = torch.randn(6, 7)
    assert torch.equal(net.eval()(x), other.eval()(x))
    assert torch.equal(net.targets(x), other.targets(x))
