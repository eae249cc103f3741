"""What each of several processes does in losses/test_distributed.py."""

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from contrastbench.distributed import average_gradients, gather, own_rows
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views

PAGE = Path(__file__).parents[2] / "docs" / "loss-kinds.md"
FILE = Path(__file__).parents[1] / "losses" / "learned.py"
SAMPLES = 7  # neither two nor three processes divide them
LEARNED = [f"{FILE}:{name}" for name in ("Temperature", "Scale", "Proxy")]
PACKAGED = ["packaged_losses:Vicreg", "packaged_losses:distance", "packaged_losses:Learned"]
LIGHTLY = ["lightly.loss:VICRegLoss", "lightly.loss:BarlowTwinsLoss"]
NAMES = [*LOSSES, "infonce + 0.5*dar", *LEARNED]
BLOCK = 30  # scores at once: every loss computes several blocks of rows
Gradients = dict[tuple[str, str], list[Tensor]]


def gradients(names: Sequence[str]) -> Gradients:
    """Return each loss and its gradients, those of its own parameters too, for half the pairings.

    The next loss has the other half.
    """
    found: Gradients = {}
    torch.manual_seed(0)
    model = nn.Linear(8, 8, dtype=torch.float64)
    for number, name in enumerate(names):
        torch.manual_seed(1)
        loss = get_loss(name)
        loss.prepare(SAMPLES, 8)
        loss.prepare_samples(SAMPLES)
        for part in loss.double().modules():
            part.block_elements = BLOCK  # type: ignore[assignment]
        for pair, pairing in [*LAW_PAIRINGS.items()][number % 2 :: 2]:
            model.zero_grad()
            loss.zero_grad()
            value = loss(pairing(embed(model, random_views(0, SAMPLES))))
            value.backward()
            trained = [p for p in (*model.parameters(), *loss.parameters()) if p.grad is not None]
            average_gradients(p.grad for p in trained)
            found[name, pair] = [value.detach(), *(p.grad.clone() for p in trained)]
    return found


def embed(model: nn.Module, views: Sequence[Tensor]) -> list[Tensor]:
    """Own rows are embedded, all are returned."""
    return [gather(model(view[own_rows(len(view))]), len(view)) for view in views]


def shown(name: str, folder: Path) -> Path:
    """Write a file that docs/loss-kinds.md shows, and return its path."""
    page = PAGE.read_text(encoding="utf-8")
    (text,) = re.findall(rf"```python\n(# {name}\n.*?)```", page, re.DOTALL)
    (folder / name).write_text(text)
    return folder / name
