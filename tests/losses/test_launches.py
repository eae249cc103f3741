"""What a step of a loss asks of an accelerator: launches, host reads, copies and memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from contrastbench.losses import LOSSES, UserError, blocks, get_loss
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, both_views, other_view, same_class
from contrastbench.losses.laws.assertions import value_and_gradient
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, numbered_samples, random_views
from shadow import counting, shadow

shadow()  # before torch's first backward pass, which asks what devices there are

SIZE = 8192  # 2N
BUDGETS = {"infonce": 120, "adnce": 160}  # with SimCLR's pairing
BUDGET = 410  # of any loss with any pairing
SMALL = 16  # times as few rows, with blocks that are as much smaller, need as many launches
LEARNED = Path(__file__).with_name("learned.py")


def classes(views: list[Tensor]) -> Tensor:
    return torch.arange(len(views[0]), device=views[0].device) % 10


EVERY: dict[str, Callable[[list[Tensor]], Contrast]] = {
    **LAW_PAIRINGS,
    "same_class": lambda views: numbered_samples(same_class(*views[:2], classes(views))),
    "both_views with labels": lambda views: numbered_samples(
        both_views(*views[:2], labels=classes(views))
    ),
}


def made(name: str) -> Loss:
    loss = get_loss(name)
    loss.prepare_samples(SIZE)
    return loss


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", blocks.BLOCK // SMALL**2)
    monkeypatch.setattr(blocks, "TILE", blocks.TILE // SMALL)


def on_device(rows: int, dim: int = 16) -> list[Tensor]:
    views = random_views(0, rows // 2, dim, dtype=torch.float32)
    return [view.to(shadow()).requires_grad_() for view in views]


@pytest.mark.parametrize("name", BUDGETS)
def test_simclrs_step_is_few_launches_and_keeps_little(name: str) -> None:
    views, loss, kept = on_device(SIZE), get_loss(name), {}

    def save(tensor: Tensor) -> Tensor:
        kept[id(tensor)] = tensor
        return tensor

    with counting() as counts:
        with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            value = loss(both_views(*views[:2]))
        value.backward()
    assert counts.launches <= BUDGETS[name], counts.launched
    assert (counts.host_reads, counts.copies) == (0, 0), counts.read_at
    assert 0 < sum(tensor.nbytes for tensor in kept.values()) < 20e6, "the matrix has 268e6"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [*LOSSES, f"{LEARNED}:Scale", f"{LEARNED}:Temperature"])
def test_every_loss_with_every_pairing(name: str) -> None:
    """On the device it is the CPU's, by few launches and without a wait."""
    for title, pairing in EVERY.items():
        views, loss = on_device(SIZE // SMALL), made(name).to(shadow())
        with counting() as counts:
            found = value_and_gradient(loss, pairing(views), views)
        limit = BUDGETS.get(name, BUDGET) if title == "both_views" else BUDGET
        few = f"{title}: {counts.launches} launches, more than {limit}: loop over no rows or keys"
        assert counts.launches <= limit, (few, counts.launched)
        assert (counts.host_reads, counts.copies) == (0, 0), (title, counts.read_at)
        on_host = [view.detach().cpu().requires_grad_() for view in views]
        expected = value_and_gradient(made(name), pairing(on_host), on_host)
        for a, b in zip(found, expected, strict=True):
            scale = max(1.0, b.abs().max().item())
            torch.testing.assert_close(a.cpu() / scale, b / scale, rtol=0, atol=1e-5)


def test_a_small_card_takes_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "memory", lambda device: 2**31)  # 2 GiB
    assert blocks.block_elements(shadow(), 2**30) == blocks.tile(shadow()) ** 2 == 2**22
    cpu = torch.device("cpu")
    assert (blocks.block_elements(cpu, 2**30), blocks.tile(cpu)) == (2**16 * 3, 2**8)


# What the CPU refuses without a wait


def test_what_shapes_tell_is_refused_on_any_device() -> None:
    one = on_device(2)[:2]
    for pairing in (both_views, other_view):
        with pytest.raises(UserError, match="no negatives"):
            get_loss("infonce")(pairing(*one))
        with pytest.raises(UserError, match="all anchors are the same sample"):
            get_loss("dar")(other_view(*one))


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, -1]])
@pytest.mark.parametrize("pairing", [same_class, both_views])
@pytest.mark.parametrize("name", LOSSES)
def test_what_only_the_device_knows_makes_the_loss_nan(
    name: str, pairing, labels: list[int]
) -> None:
    """One class has no negatives, and -1 is no class: the CPU raises."""
    views, loss = on_device(6)[:2], made(name).to(shadow())
    with counting() as counts:
        contrast = pairing(*views, labels=torch.tensor(labels).to(shadow()))
        value = loss(replace(contrast, index=contrast.anchor_id.clamp_min(0)))
    assert (counts.host_reads, counts.copies) == (0, 1)
    assert value.cpu().isnan()
    loss = made(name)
    with pytest.raises(UserError):
        loss(
            numbered_samples(pairing(*[view.cpu() for view in views], labels=torch.tensor(labels)))
        )
