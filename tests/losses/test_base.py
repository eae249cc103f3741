"""Row blocks, precision, sums and ranges: what all losses share."""

import math
import random

import numpy as np
import pytest
import torch

from contrastbench.losses import (
    Contrast,
    Loss,
    ScoreLoss,
    Scores,
    UserError,
    base,
    both_views,
    get_loss,
    other_view,
    whole_row,
)
from contrastbench.losses.base import block_scores, in_range
from contrastbench.losses.ranges import Choice


@pytest.fixture
def views() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(9, 4, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(2)
    ]


@pytest.mark.parametrize("name", ["infonce", "adnce"])
@pytest.mark.parametrize("pairing", [both_views, other_view, whole_row])
@pytest.mark.parametrize("elements", [1, 25, 77, 161])
def test_row_blocks_change_nothing(
    name: str, pairing, elements: int, views: list[torch.Tensor]
) -> None:
    whole, blocked = get_loss(name, temperature=0.1), get_loss(name, temperature=0.1)
    blocked.block_elements = elements
    values = [loss(pairing(*views)) for loss in (whole, blocked)]
    assert values[1].item() == pytest.approx(values[0].item(), abs=1e-14)
    gradients = [torch.cat(torch.autograd.grad(value, views)) for value in values]
    assert torch.allclose(*gradients, atol=1e-14, rtol=0)


DRAWS = {
    "torch": lambda count: torch.rand(count, dtype=torch.float64),
    "numpy": lambda count: torch.from_numpy(np.random.rand(count)),
    "python": lambda count: torch.tensor([random.random() for _ in range(count)]).double(),
}


class Drawn(ScoreLoss):
    """A loss that weighs its anchors at random, by the generator of that name."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source

    def terms(self, scores: Scores) -> torch.Tensor:
        return DRAWS[self.source](len(scores.pos)) * mean_pos(scores).flatten().square()


@pytest.mark.parametrize("source", list(DRAWS))
def test_a_block_is_recomputed_with_the_draws_of_its_forward_pass(
    source: str, views: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gradients_and_next() -> tuple[torch.Tensor, float, float, float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        loss = Drawn(source)
        loss.block_elements = 37
        found = torch.cat(torch.autograd.grad(loss(both_views(*views)), views))
        return found, torch.rand(1).item(), np.random.rand(), random.random()

    recomputed = gradients_and_next()
    monkeypatch.setattr(base, "checkpoint", lambda block, *inputs, **_: block(*inputs))
    kept = gradients_and_next()
    assert torch.equal(recomputed[0], kept[0])
    assert recomputed[1:] == kept[1:], "the recomputation takes nothing from the generators"


class Centred(ScoreLoss):
    """A loss of scores minus the batch's mean positive, which is a constant."""

    calls = 0

    def terms(self, scores: Scores) -> torch.Tensor:
        return (mean_pos(scores) - scores.of_batch(mean_pos, self.pool)).square()

    def pool(self, values: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return values.mean()


def mean_pos(scores: Scores) -> torch.Tensor:
    return scores.mean_pos(scores.pos)


@pytest.mark.parametrize("elements", [1, 25, 77, 161, 1000])
def test_a_constant_of_the_batch_is_computed_once(elements: int, views: list[torch.Tensor]) -> None:
    loss, contrast = Centred(), other_view(*views)
    loss.block_elements = elements
    value = loss(contrast)
    gradient = torch.cat(torch.autograd.grad(value, views, retain_graph=True))
    cosines = torch.linalg.vecdot(contrast.anchor, contrast.positives().squeeze(1))
    expected = (cosines - cosines.mean().detach()).square().mean()
    assert value.item() == pytest.approx(expected.item(), abs=1e-14)
    assert torch.allclose(gradient, torch.cat(torch.autograd.grad(expected, views)), atol=1e-14)
    assert loss.calls == 1


def test_scores_alone_are_the_whole_batch(views: list[torch.Tensor]) -> None:
    scores = block_scores(other_view(*views), slice(None))
    found = scores.of_batch(mean_pos, torch.mean)
    assert found.item() == pytest.approx(mean_pos(scores).mean().item(), abs=1e-14)
    assert not found.requires_grad


def test_row_blocks_bound_the_memory_of_the_backward_pass(views: list[torch.Tensor]) -> None:
    kept: list[int] = []

    def save(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    loss = get_loss("infonce")
    loss.block_elements = 18
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        loss(both_views(*views))
    assert max(kept) < 18 * 18


def test_scores_stay_in_float32_under_autocast(views: list[torch.Tensor]) -> None:
    single = [view.detach().float() for view in views]
    loss = get_loss("infonce", temperature=0.05)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(both_views(*single)).item() == pytest.approx(loss(both_views(*single)).item())
        inside = loss(both_views(*single))
    assert inside.dtype == torch.float32
    assert inside.item() == loss(both_views(*single)).item()


@pytest.mark.parametrize("pairing", [both_views, other_view, whole_row])
def test_a_batch_of_one_has_no_negatives(pairing) -> None:
    with pytest.raises(UserError, match="no negatives"):
        get_loss("infonce")(pairing(torch.ones(1, 3), torch.ones(1, 3)))


def test_losses_add_up(views: list[torch.Tensor]) -> None:
    contrast = both_views(*views)
    first, second = get_loss("infonce", temperature=0.3), get_loss("adnce")
    total = 2 * first + 0.5 * (second + first)
    expected = 2.5 * first(contrast) + 0.5 * second(contrast)
    assert total(contrast).item() == pytest.approx(expected.item(), abs=1e-12)
    assert len(list(total.losses)) == 3


def test_the_flags_act_in_the_denominator_only(views: list[torch.Tensor]) -> None:
    def value(**flags: bool) -> float:
        c = other_view(*views)
        fields = {"positive_in_denominator": False, "mean_over_negatives": False, **flags}
        return get_loss("infonce")(
            Contrast(c.anchor, c.positive, c.keys, c.anchor_id, c.key_id, **fields)
        ).item()

    assert value(mean_over_negatives=True) == pytest.approx(value() - math.log(8), abs=1e-12)
    assert value(positive_in_denominator=True) > value()


def test_parameters_are_told_by_name() -> None:
    loss: Loss = get_loss("hcl", beta=2)
    assert loss.params == {"temperature": 0.5, "tau_plus": 0.1, "beta": 2.0}
    assert repr(loss) == "HCL(temperature=0.5, tau_plus=0.1, beta=2.0)"


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True])
def test_a_value_out_of_range_is_named(value: object) -> None:
    with pytest.raises(UserError, match=r"temperature must be a finite number > 0, got"):
        in_range("temperature", value, low=0)


def test_closed_ranges_and_choices() -> None:
    assert in_range("alpha", 1, low=0, high=1, closed=True) == 1.0
    with pytest.raises(UserError, match="alpha must be a finite number >= 0 and <= 1, got 2"):
        in_range("alpha", 2, low=0, high=1, closed=True)
    with pytest.raises(UserError, match="variant must be one of paper, official_code, got 'papre'"):
        Choice("paper", "official_code").check("variant", "papre", {})


@pytest.mark.parametrize("given", [(torch.eye(3), torch.eye(3)), (torch.eye(3),)])
def test_embeddings_alone_do_not_say_who_meets_whom(given: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(
        TypeError, match=r"^infonce takes a Contrast.* loss\(both_views\(z1, z2\)\)"
    ):
        get_loss("infonce")(*given)
