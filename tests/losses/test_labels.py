"""Who meets whom, with class labels."""

import pytest
import torch

from contrastbench.losses import UserError, both_views, get_loss, same_class
from contrastbench.losses.base import block_scores
from contrastbench.losses.laws.random_contrasts import random_views

LABELS = torch.tensor([0, 1, 0, 2, 0])


def test_same_class_positives_are_the_other_embeddings_of_the_class() -> None:
    views = random_views(0, 5)[:2]
    scores = block_scores(same_class(*views, LABELS), slice(None))
    z = torch.nn.functional.normalize(torch.cat(views), dim=1)
    y = LABELS.repeat(2)
    assert scores.padding is not None
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
    "labels", [torch.tensor([0, 1]), torch.tensor([0, 1, -1]), torch.tensor([0.0, 1.0, 2.0])]
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
