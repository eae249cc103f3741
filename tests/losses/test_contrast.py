"""Tests of who meets whom: pairings of views, and positives by labels."""

from dataclasses import replace

import pytest
import torch

from allocations import Allocations
from contrastbench.losses import (
    LOSSES,
    Contrast,
    UserError,
    both_views,
    get_loss,
    other_view,
    query_key,
    queued,
    whole_row,
)
from contrastbench.losses.base import block_scores
from contrastbench.losses.contrast import own_view, part_of, permuted, same_class, unit, whole_of
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    SCORED,
    PairingFunction,
    numbered_samples,
    random_views,
    with_sample_numbers,
)
from contrastbench.losses.registry import SUPERVISED

N, D = 5, 7


@pytest.fixture
def views() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(N, D, generator=generator, dtype=torch.float64) for _ in range(4)]


def seen(contrast: Contrast) -> list[list[int]]:
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


PAIRINGS = [both_views, other_view, whole_row, own_view, query_key]
WHOLE = "floating-point numbers, got torch.int64: give z.float"


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_views_of_two_precisions_meet_in_the_wider_one(pairing, views: list[torch.Tensor]) -> None:
    single = views[0].float()
    for given in ((single, views[1]), (views[1], single)):
        found, expected = pairing(*given), pairing(*(z.double() for z in given))
        assert found.anchor.dtype == found.keys.dtype == torch.float64
        assert torch.equal(found.anchor, expected.anchor)
        assert torch.equal(found.positives(), expected.positives())


Z, IDS = torch.eye(3), torch.arange(3)
WRONG = [
    *((lambda pair=pair: pair(Z, Z[:2]), "one shape") for pair in PAIRINGS if pair is not own_view),
    *((lambda pair=pair: pair(Z.long(), Z.long()), WHOLE) for pair in PAIRINGS),
    (lambda: query_key([], Z), "query_key got no crop: give"),
    (lambda: query_key(Z[:0, None], Z), "query_key got no crop: give"),
    (
        lambda: Contrast(Z, Z[:, None], Z, IDS, IDS[:2]),
        r"Contrast.key_id has shape \(2,\), expected \(3,\)",
    ),
    (lambda: Contrast(Z, Z, Z, IDS, IDS), "Contrast.positive"),
    (lambda: Contrast(Z, None, Z, IDS, IDS), "a Contrast without positive needs positive_key"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_what_makes_no_contrast_is_refused(make, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()


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


LABELS = torch.tensor([0, 1, 0, 2, 0])


def test_same_class_positives_are_the_other_embeddings_of_the_class() -> None:
    views = random_views(0, 5)[:2]
    scores = block_scores(same_class(*views, LABELS), slice(None))
    z = torch.nn.functional.normalize(torch.cat(views), dim=1)
    y = LABELS.repeat(2)
    for i in range(10):
        mates = [j for j in range(10) if j != i and y[j] == y[i]]
        others = [j for j in range(10) if y[j] != y[i]]
        assert len(mates) == [5, 1, 5, 1, 5][i % 5]
        torch.testing.assert_close(scores.pos[i][~scores.padding[i]], z[mates] @ z[i])
        torch.testing.assert_close(scores.neg[i][~scores.hole[i]], z[others] @ z[i])
        assert scores.count[i].item() == len(others)


def test_labels_only_remove_false_negatives() -> None:
    views = random_views(0, 5)[:2]
    plain, labelled = both_views(*views), both_views(*views, labels=LABELS)
    assert torch.equal(plain.positive, labelled.positive)
    kept = ~block_scores(labelled, slice(None)).hole
    assert torch.equal(kept, LABELS.repeat(2).unsqueeze(1) != LABELS.repeat(2))


def test_labels_all_different_are_no_labels() -> None:
    views = random_views(1, 4)[:2]
    expected = get_loss("infonce")(both_views(*views))
    torch.testing.assert_close(
        get_loss("infonce")(both_views(*views, labels=torch.arange(4))), expected
    )
    torch.testing.assert_close(get_loss("infonce")(same_class(*views, torch.arange(4))), expected)


@pytest.mark.parametrize(
    "labels",
    [
        torch.tensor([0, 1]),
        torch.tensor([0, 1, -1]),
        torch.tensor([0.0, 1.0, 2.0]),
        torch.tensor([True, False, True]),
    ],
)
def test_labels_that_are_none(labels: torch.Tensor) -> None:
    views = random_views(0, 3)[:2]
    with pytest.raises(UserError, match="labels must be 3 whole numbers from 0"):
        same_class(*views, labels)
    with pytest.raises(UserError, match="labels must be 3 whole numbers from 0"):
        both_views(*views, labels=labels)


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name != "dar"]
)  # it reads no positives
def test_a_sample_without_another_of_its_class_has_no_positive(name: str) -> None:
    view = random_views(0, 5)[0]
    contrast = numbered_samples(same_class(view, None, torch.tensor([0, 0, 1, 1, 2])))
    with pytest.raises(UserError, match="an anchor has no positive: put two samples of each"):
        with_sample_numbers(get_loss(name))(contrast)


@pytest.mark.parametrize("name", SUPERVISED)
def test_losses_without_positives_take_a_class_of_one_sample(name: str) -> None:
    loss, view = get_loss(name), random_views(0, 5)[0]
    loss.prepare(3, view.shape[1])
    assert loss.double()(same_class(view, None, torch.tensor([0, 0, 1, 1, 2]))).isfinite()


def test_positives_of_a_class_are_not_copied() -> None:
    """Ten classes of 8192 embeddings: the (A, P, D) positives would take 3.4 GB."""
    labels = torch.arange(4096) % 10
    with Allocations() as allocations:
        contrast = same_class(*torch.randn(2, 4096, 128), labels)
        contrast_bytes = allocations.largest
    assert contrast.positive is None
    assert contrast_bytes <= contrast.positive_key.nbytes < 60e6


@pytest.mark.parametrize("name", LOSSES)
def test_positives_that_are_keys_are_those_that_are_written_out(name: str) -> None:
    views = random_views(0, 9, grad=True)
    contrast = numbered_samples(same_class(*views[:2], torch.arange(9) % 4))
    copied = replace(contrast, positive=contrast.positives(), positive_key=None)
    loss = with_sample_numbers(get_loss(name)).eval()
    for a, b in zip(*(value_and_gradient(loss, c, views) for c in (contrast, copied)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pairing", LAW_PAIRINGS.values(), ids=list(LAW_PAIRINGS))
def test_padding_is_never_none(pairing: PairingFunction) -> None:
    """A user's loss may mask by it, whatever the pairing."""
    contrast = pairing(random_views(0, 5))
    scores = block_scores(contrast, slice(1, 4))
    assert (scores.padding.shape, scores.padding.dtype) == (scores.pos.shape, torch.bool)
    expected = 0 if contrast.padding is None else contrast.padding[1:4].sum()
    assert scores.padding.sum() == expected


def test_padding_overflows_nothing() -> None:
    """Attention of an anchor whose only positive is its opposite: padding has the larger cosine."""
    view = random_views(0, 5, dtype=torch.float32, grad=True)[0]
    views, whole = [view], same_class(view, -view, LABELS)
    for contrast in (whole, padded(whole)):
        loss = get_loss("attentionnce", d_pos=0.001)
        value, *gradients = value_and_gradient(loss, contrast, views)
        assert value.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients)


def padded(contrast: Contrast) -> Contrast:
    """Its positives written out, with zeros as padding."""
    positive = contrast.positives().masked_fill(contrast.padding.unsqueeze(2), 0)
    return replace(contrast, positive=positive, positive_key=None)
