"""Views against their definition, row by row, and their rates."""

import pytest
import torch

from contrastbench.domains.tabular import TabularRecipe
from contrastbench.domains.tabular.views import (
    FeatureLayout,
    changed_features,
    corrupt,
    two_views,
    view,
)

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


def test_views_leave_the_table_and_the_global_random_state_alone() -> None:
    table, before = TABLE.clone(), torch.get_rng_state()
    two_views(table, torch.arange(50), FEATURES, TabularRecipe(views="masking+corruption"), rng())
    assert torch.equal(table, TABLE)
    assert torch.equal(torch.get_rng_state(), before)
