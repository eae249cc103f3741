"""Tests of pairings with class labels."""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from contrastbench.losses import LOSSES, Contrast, UserError, both_views, get_loss, same_class
from contrastbench.losses.base import block_scores
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.random_contrasts import (
    LAW_PAIRINGS,
    PairingFunction,
    numbered_samples,
    random_views,
    with_sample_numbers,
)
from contrastbench.losses.registry import SUPERVISED

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


def test_one_class_has_no_negatives() -> None:
    views = random_views(0, 3)[:2]
    with pytest.raises(ValueError, match="no negatives"):
        get_loss("infonce")(same_class(*views, torch.zeros(3, dtype=torch.long)))


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


class Allocations(TorchDispatchMode):
    """The largest tensor that any operation gives."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes())
        return result


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


def test_a_contrast_without_positives_needs_their_keys() -> None:
    z, ids = torch.eye(3), torch.arange(3)
    with pytest.raises(UserError, match="a Contrast without positive needs positive_key"):
        Contrast(z, None, z, ids, ids)
