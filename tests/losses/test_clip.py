"""The two directions of CLIP, and the limit of its temperature."""

import math
from dataclasses import replace

import pytest
import torch

from contrastbench.benchmarks.running.publishing import learned_details
from contrastbench.losses import both_views, get_loss, other_view, query_key, same_class, whole_row
from contrastbench.losses.contrast import permuted
from contrastbench.losses.laws.random_contrasts import random_views

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])


@pytest.fixture
def views() -> list[torch.Tensor]:
    return [view.float() for view in random_views(3, 6)]


@pytest.mark.parametrize("pairing", [other_view, whole_row, query_key])
def test_it_is_the_mean_of_both_directions(pairing, views: list[torch.Tensor]) -> None:
    one, two, _ = views
    loss, row = get_loss("clip", temperature=0.2), get_loss("infonce", temperature=0.2)
    there, back = pairing(one, two), pairing(two, one)
    expected = (row(there) + row(back)) / 2
    assert abs(row(there) - row(back)) > 1e-3
    assert loss(there).item() == pytest.approx(expected.item(), rel=1e-5)
    assert loss(back).item() == pytest.approx(expected.item(), rel=1e-5)


def test_where_both_directions_are_equal_it_begins_as_infonce(views: list[torch.Tensor]) -> None:
    loss, row = get_loss("clip", temperature=0.2), get_loss("infonce", temperature=0.2)
    for contrast in (both_views(*views[:2]), same_class(*views[:2], LABELS)):
        assert loss(contrast).item() == pytest.approx(row(contrast).item(), rel=1e-5)


def test_of_false_positives_no_direction_sees_the_true_ones(views: list[torch.Tensor]) -> None:
    """The positive of an anchor is another sample's key, in the columns too."""
    contrast = permuted(other_view(*views[:2]))
    value = get_loss("clip", temperature=0.2)(contrast)
    true = get_loss("clip", temperature=0.2)(other_view(*views[:2]))
    assert value > true + 1


@pytest.mark.parametrize("moved", [lambda c: c, permuted], ids=["mutual", "permuted"])
@pytest.mark.parametrize(
    "pairing", [both_views, lambda a, b: same_class(a, b, LABELS)], ids=["both", "class"]
)
def test_mutual_positives_save_a_direction_and_nothing_else(
    pairing, moved, views: list[torch.Tensor]
) -> None:
    contrast = moved(pairing(*views[:2]))
    unknown = replace(contrast, partners=None)
    assert (contrast.mutual, unknown.mutual) == (moved is not permuted, False)
    loss = get_loss("clip", temperature=0.2)
    assert loss(contrast).item() == pytest.approx(loss(unknown).item(), rel=1e-5)


def test_each_step_takes_the_scale_back_to_100(views: list[torch.Tensor]) -> None:
    loss, contrast = get_loss("clip"), whole_row(*views[:2])
    with torch.no_grad():
        loss.log_scale.fill_(6.0)
    loss.eval()(contrast)
    assert loss.log_scale.item() == 6.0
    loss.train()(contrast).backward()
    assert loss.log_scale.item() == pytest.approx(math.log(100))
    assert loss.log_scale.grad != 0


def test_a_record_has_no_scale_over_100() -> None:
    loss = get_loss("clip")
    loss.log_scale.data.fill_(6.0)  # where the last step has led
    (found,) = learned_details(loss)["learned"].values()
    assert found == pytest.approx(math.log(100))
