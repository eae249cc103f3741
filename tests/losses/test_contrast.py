"""Tests of anchors, positives and negatives in each pairing."""

import pytest
import torch

from contrastbench.losses import (
    Contrast,
    UserError,
    both_views,
    other_view,
    query_key,
    queued,
    whole_row,
)
from contrastbench.losses.base import block_scores
from contrastbench.losses.contrast import own_view, part_of, permuted, same_class, unit, whole_of
from contrastbench.losses.laws.random_contrasts import SCORED, random_views

N, D = 5, 7


@pytest.fixture
def views() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(N, D, generator=generator, dtype=torch.float64) for _ in range(4)]


def seen(contrast: Contrast) -> list[list[int]]:
    """Which keys are each anchor's negatives."""
    scores = block_scores(contrast, slice(None))
    return [row.nonzero().flatten().tolist() for row in scores.neg.isfinite()]


def test_both_views_meet_all_other_samples(views: list[torch.Tensor]) -> None:
    contrast = both_views(*views[:2])
    for i, negatives in enumerate(seen(contrast)):
        assert negatives == [j for j in range(2 * N) if j % N != i % N]
    assert torch.equal(contrast.positive[:, 0], unit(torch.cat([views[1], views[0]])))


def test_further_views_take_the_partners_place(views: list[torch.Tensor]) -> None:
    contrast = both_views(views[0], views[1], positives=views[2:])
    assert contrast.positive.shape == (2 * N, 2, D)
    assert torch.equal(contrast.positive[N + 3, 1], unit(views[3])[3])


def test_other_view_leaves_the_partner_out(views: list[torch.Tensor]) -> None:
    assert seen(other_view(*views[:2])) == [[j for j in range(N) if j != i] for i in range(N)]


def test_whole_row_keeps_the_partner(views: list[torch.Tensor]) -> None:
    assert seen(whole_row(*views[:2])) == [list(range(N))] * N


def test_query_key_meets_the_target_view_from_every_crop(views: list[torch.Tensor]) -> None:
    contrast = query_key(views[:3], views[3])
    assert seen(contrast) == [[j for j in range(N) if j != i] for i in range(N)] * 3
    assert torch.equal(contrast.positive[2 * N + 1, 0], unit(views[3])[1])
    assert torch.equal(contrast.anchor, query_key(torch.stack(views[:3]), views[3]).anchor)
    assert query_key(views[0], views[3]).anchor.shape == (N, D)


@pytest.mark.parametrize("pairing", [both_views, other_view, whole_row, query_key])
def test_views_of_different_shape_are_refused(pairing, views: list[torch.Tensor]) -> None:
    with pytest.raises(UserError, match="one shape"):
        pairing(views[0], views[1][:-1])


PAIRINGS = [both_views, other_view, whole_row, own_view, query_key]


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_views_of_two_precisions_meet_in_the_wider_one(pairing, views: list[torch.Tensor]) -> None:
    single = views[0].float()
    for given in ((single, views[1]), (views[1], single)):
        found, expected = pairing(*given), pairing(*(z.double() for z in given))
        assert found.anchor.dtype == found.keys.dtype == torch.float64
        assert torch.equal(found.anchor, expected.anchor)
        assert torch.equal(found.positives(), expected.positives())


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_whole_numbers_are_no_embeddings(pairing) -> None:
    z = torch.ones(3, 2, dtype=torch.int64)
    with pytest.raises(UserError, match=r"floating-point numbers, got torch.int64: give z.float"):
        pairing(z, z)


def test_no_crop_is_refused(views: list[torch.Tensor]) -> None:
    for none in ([], torch.stack(views)[:0]):
        with pytest.raises(UserError, match="query_key got no crop: give"):
            query_key(none, views[0])


def test_contrast_checks_its_shapes() -> None:
    z, ids = torch.eye(3), torch.arange(3)
    with pytest.raises(UserError, match=r"Contrast.key_id has shape \(2,\), expected \(3,\)"):
        Contrast(z, z[:, None], z, ids, ids[:2])
    with pytest.raises(UserError, match=r"Contrast.positive"):
        Contrast(z, z, z, ids, ids)


def test_half_precision_is_widened() -> None:
    z = torch.eye(3, dtype=torch.bfloat16)
    assert other_view(z, z).anchor.dtype == torch.float32


def test_rows_of_zeros_stay_zero_with_a_bounded_gradient() -> None:
    z = torch.zeros(2, 3, requires_grad=True)
    unit(z).sum().backward()
    assert unit(z).tolist() == [[0.0] * 3] * 2
    assert z.grad is not None
    assert z.grad.abs().max() <= 1


def crops(one: torch.Tensor, two: torch.Tensor) -> Contrast:
    return query_key([one, one, one], two)


@pytest.mark.parametrize("pair", [both_views, other_view, whole_row, query_key, crops])
def test_permuted_positives_are_of_other_samples_and_negatives_stay(pair) -> None:
    one, two = torch.eye(9), torch.eye(9)
    contrast = pair(one, two)
    moved = permuted(contrast)
    partner, third = contrast.positives().argmax(dim=2), len(contrast.keys) // 3
    assert torch.equal(moved.positives().argmax(dim=2), partner.roll(third, 0))
    assert torch.equal(moved.keys, contrast.keys)
    assert torch.equal(*(block_scores(one, slice(None)).hole for one in (moved, contrast)))


@pytest.mark.parametrize("pair", [both_views, whole_row])
def test_a_drawn_share_of_positives_is_permuted(pair) -> None:
    contrast = pair(torch.eye(300), torch.eye(300))
    moved, again = (permuted(contrast, 0.4, torch.Generator().manual_seed(1)) for _ in range(2))
    kept = moved.positives().argmax(dim=2) == contrast.positives().argmax(dim=2)
    assert 0.3 < 1 - kept.float().mean() < 0.5
    assert torch.equal(moved.positives(), again.positives()), "by the generator alone"
    wrong = permuted(contrast).positives()[~kept.flatten()]
    assert torch.equal(moved.positives()[~kept.flatten()], wrong)


def test_padding_moves_with_the_permuted_positives() -> None:
    starts = torch.tensor([0, 1, 3, 6])
    contrast = permuted(part_of(torch.eye(3), torch.eye(6)[:, :3], starts, 3))
    assert contrast.padding is not None
    assert (~contrast.padding).sum(dim=1).tolist() == [3, 1, 2]
    nodes = whole_of(torch.eye(6)[:, :3], torch.eye(3), torch.tensor([0, 2, 4, 6]))
    assert permuted(nodes).positive_key.flatten().tolist() == [2, 2, 0, 0, 1, 1]
    by_class = same_class(torch.eye(4), torch.eye(4), torch.tensor([0, 0, 0, 1]))
    moved = permuted(by_class)
    for name in ("positive_key", "padding"):
        before, after = getattr(by_class, name), getattr(moved, name)
        assert after[2:].equal(before[:-2])
        assert after[:2].equal(before[-2:])


@pytest.mark.parametrize("pairing", SCORED)
def test_a_queue_is_negative_for_all_and_changes_nothing_else(pairing: str) -> None:
    contrast, rows = SCORED[pairing](random_views(0, 6)), unit(random_views(1, 5)[0])
    plain, more = (block_scores(c, slice(None)) for c in (contrast, queued(contrast, rows)))
    assert torch.equal(more.pos, plain.pos)
    torch.testing.assert_close(more.neg, torch.cat([plain.neg, contrast.anchor @ rows.T], dim=1))
    assert torch.equal(more.count, plain.count + 5)
    assert torch.equal(more.neg.isfinite().sum(dim=1, keepdim=True), more.count.long())
    empty = block_scores(queued(contrast, torch.empty(0)), slice(None))
    assert torch.equal(empty.neg, plain.neg)
