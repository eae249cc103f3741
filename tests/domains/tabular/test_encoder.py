"""The encoders of tables, and the views that they train on."""

import math

import pytest
import torch
from torch import nn

from contrastbench.domains.registry import make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.domains.tabular.encoder import Maxout, TabularModel, perceptron
from contrastbench.domains.tabular.views import (
    FeatureLayout,
    changed_features,
    corrupt,
    two_views,
    view,
)

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


FEATURE_OF = torch.tensor(
    [0, 1, 1, 1, 2, 3, 3]
)  # one-hot columns of features 1 and 3 stand together
FEATURES = FeatureLayout(FEATURE_OF, 4)
TABLE = torch.arange(50.0)[:, None] + torch.arange(7.0) / 10  # a value tells its row and its column


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_corruption_is_its_loop() -> None:
    x, chosen = TABLE[:20], torch.rand(20, 4, generator=rng(1)) < 0.5
    donors = torch.randint(50, (20, 4), generator=rng(2))
    expected = x.clone()
    for i in range(20):
        for column, feature in enumerate(FEATURE_OF.tolist()):
            if chosen[i, feature]:
                expected[i, column] = TABLE[donors[i, feature], column]
    assert torch.equal(corrupt(x, TABLE, FEATURE_OF, chosen, rng(2)), expected)


def test_masking_zeroes_whole_features_at_the_rate() -> None:
    x = torch.ones(20_000, 7)
    out = view(x, x, FEATURES, TabularRecipe(views="masking", rate=0.2), rng())
    assert set(out.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(out[:, 1], out[:, 2])
    assert torch.equal(out[:, 5], out[:, 6])
    first = out[:, [0, 1, 4, 5]]
    assert (first == 0).float().mean(dim=0).tolist() == pytest.approx(
        [0.2] * 4, abs=0.01
    )  # 3.5 standard deviations
    both = ((first[:, 0] == 0) & (first[:, 1] == 0)).float().mean().item()
    assert both == pytest.approx(0.04, abs=0.006), "features are masked independently"


def test_corruption_draws_from_the_marginals_of_the_whole_table() -> None:
    draw = torch.Generator().manual_seed(3)
    table = torch.bernoulli(torch.tensor([0.1, 0.5, 0.9]).expand(400, 3), generator=draw)
    x = torch.full((20_000, 3), 2.0)
    each = FeatureLayout(torch.arange(3), 3)
    out = view(x, table, each, TabularRecipe(views="corruption", rate=0.4), rng())
    changed = out != 2
    assert changed.float().mean(dim=0).tolist() == pytest.approx([0.4] * 3, abs=0.015)
    for column in range(3):
        drawn = out[changed[:, column], column].mean().item()
        assert drawn == pytest.approx(table[:, column].mean().item(), abs=0.02)


def test_both_is_corruption_and_then_masking() -> None:
    x, table = torch.ones(20_000, 4), torch.full((10, 4), 5.0)
    out = view(
        x,
        table,
        FeatureLayout(torch.arange(4), 4),
        TabularRecipe(views="masking+corruption", rate=0.3),
        rng(),
    )
    share = {value: (out == value).float().mean().item() for value in (0.0, 1.0, 5.0)}
    assert share == pytest.approx({0.0: 0.3, 1.0: 0.49, 5.0: 0.21}, abs=0.01)


@pytest.mark.parametrize(("rate", "count"), [(0.6, 30), (0.59, 29), (1.0, 50), (0.02, 1)])
def test_exactly_so_many_features_are_chosen_and_each_equally_often(
    rate: float, count: int
) -> None:
    chosen = changed_features((4000, 50), TabularRecipe(rate=rate, choice="exact"), rng())
    assert chosen.sum(dim=1).unique().tolist() == [count]
    assert chosen.float().mean(dim=0).tolist() == pytest.approx([count / 50] * 50, abs=0.035)


def test_without_views_rows_are_themselves() -> None:
    rows = torch.tensor([3, 1])
    one, two = two_views(TABLE, rows, FEATURES, TabularRecipe(views="none"), rng())
    assert torch.equal(one, TABLE[rows])
    assert torch.equal(two, TABLE[rows])


def test_two_views_differ_and_scarfs_first_is_clean() -> None:
    rows = torch.arange(50)
    one, two = two_views(TABLE, rows, FEATURES, TabularRecipe(views="corruption"), rng())
    assert not torch.equal(one, two)
    assert not torch.equal(one, TABLE)
    clean, changed = two_views(TABLE, rows, FEATURES, TabularRecipe(pairing="one_way"), rng())
    assert torch.equal(clean, TABLE)
    assert not torch.equal(changed, TABLE)
