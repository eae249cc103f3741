"""Row blocks, precision, sums and ranges: what all losses share."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from contrastbench.losses import Loss, ScoreLoss, Scores, get_loss
from contrastbench.losses.base import block_scores
from contrastbench.losses.contrast import Contrast, both_views, other_view, whole_row


@pytest.fixture
def views() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(9, 4, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(2)
    ]


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
def test_blocks_are_recomputed_with_the_draws_of_their_forward_pass(
    source: str, views: list[torch.Tensor]
) -> None:
    def gradients_and_next(elements: int) -> tuple[torch.Tensor, float, float, float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        loss = Drawn(source)
        loss.block_elements = elements
        found = torch.cat(torch.autograd.grad(loss(both_views(*views)), views))
        return found, torch.rand(1).item(), np.random.rand(), random.random()

    recomputed, kept = gradients_and_next(37), gradients_and_next(10**9)
    assert torch.allclose(recomputed[0], kept[0], rtol=0, atol=1e-14)
    assert recomputed[1:] == kept[1:], "the recomputation takes nothing from the generators"


class Centred(ScoreLoss):
    """A loss of scores minus the batch's mean positive, which is a constant."""

    calls, negatives = 0, True

    def terms(self, scores: Scores) -> torch.Tensor:
        mean = scores.of_batch(mean_pos, self.pool, self.negatives)
        return (mean_pos(scores) - mean).square()

    def pool(self, values: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return values.mean()


def mean_pos(scores: Scores) -> torch.Tensor:
    return scores.mean_pos(scores.pos)


@pytest.mark.parametrize("negatives", [True, False])
@pytest.mark.parametrize("pairing", [other_view, whole_row])
@pytest.mark.parametrize("elements", [1, 25, 77, 161, 1000])
def test_a_constant_of_the_batch_is_computed_once(
    elements: int, pairing: Callable[..., Contrast], negatives: bool, views: list[torch.Tensor]
) -> None:
    loss, contrast = Centred(), pairing(*views)
    loss.block_elements, loss.negatives = elements, negatives
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


def test_losses_add_up(views: list[torch.Tensor]) -> None:
    contrast = both_views(*views)
    first, second = get_loss("infonce", temperature=0.3), get_loss("adnce")
    total = 2 * first + 0.5 * (second + first)
    expected = 2.5 * first(contrast) + 0.5 * second(contrast)
    assert total(contrast).item() == pytest.approx(expected.item(), abs=1e-12)
    assert len(list(total.losses)) == 3


def test_parameters_are_told_by_name() -> None:
    loss: Loss = get_loss("hcl", beta=2)
    assert loss.params == {"temperature": 0.5, "tau_plus": 0.1, "beta": 2.0}
    assert repr(loss) == "HCL(temperature=0.5, tau_plus=0.1, beta=2.0)"


@pytest.mark.parametrize("given", [(torch.eye(3), torch.eye(3)), (torch.eye(3),)])
def test_embeddings_alone_do_not_say_who_meets_whom(given: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(
        TypeError, match=r"^infonce takes a Contrast.* loss\(both_views\(z1, z2\)\)"
    ):
        get_loss("infonce")(*given)
