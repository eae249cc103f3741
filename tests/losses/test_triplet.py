"""Triplets are counted, not listed: the counts, for few and for many columns."""

import pytest
import torch

from contrastbench.losses.library.triplet import FEW, count_below


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("columns", [1, FEW, FEW + 1])
@pytest.mark.parametrize("bounds", [1, FEW, FEW + 1])
def test_counts_are_those_of_a_loop_with_ties_and_infinities(
    columns: int, bounds: int, right: bool
) -> None:
    drawn = torch.randint(5, (3, columns + bounds), generator=torch.Generator().manual_seed(0))
    values = drawn.double().masked_fill(drawn == 4, torch.inf)
    x, bound = values.split([columns, bounds], dim=1)
    expected = [
        [sum(one < top or (right and one == top) for one in row) for top in tops]
        for row, tops in zip(x.tolist(), bound.tolist(), strict=True)
    ]
    assert count_below(x, bound, right).tolist() == expected
