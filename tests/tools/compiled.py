"""Small trainings that are compiled in part, on any device."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contrastbench.benchmarks.records.experiment import Cell, Experiment, make_experiment
from contrastbench.benchmarks.running import compiling
from contrastbench.benchmarks.running.history import History
from contrastbench.benchmarks.running.opening import make_cell_loss, open_domain
from contrastbench.benchmarks.running.training import AnyDomain, train
from contrastbench.losses import Loss, LossSpec

SMALL: dict[str, dict[str, Any]] = {
    "image": {"limit": 72, "batch_size": 8, "width": 0.0625, "projection": [16, 8], "epochs": 1},
    "tabular": {"limit": 100, "batch_size": 8, "widths": [8, 8], "epochs": 1},
    "graph": {"limit": 40, "batch_size": 8, "epochs": 1},
    "sentence": {"limit": 45, "batch_size": 8, "epochs": 2, "eval_every": 100},
}
CASES = {
    "images": ("image", "adnce", {}),
    "images, hard": ("image", "infonce", {"views": "hard", "precision": "bf16", "blur": 0.5}),
    "tables": ("tabular", "adnce", {"pairing": "both_views", "views": "masking+corruption"}),
    "tables, a memory": ("tabular", "isogclr", {"pairing": "both_views"}),
    "tables by class": ("tabular", "cross_entropy", {"pairing": "supervised"}),
    "sentences": ("sentence", "adnce", {}),  # the last batch of an epoch is smaller
}


def experiment(domain: str, loss: str, values: dict[str, Any]) -> Experiment:
    return make_experiment(domain, None, LossSpec(loss), {**SMALL[domain], **values}, tiny=True)


def ordinary(work: Experiment, device: torch.device) -> tuple[dict[str, Tensor], History]:
    """The weights and the history of steps that are no graphs, on batches as graphs take them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "capture", refuse)
        padded = work.domain == "sentence"  # dropout of other lengths draws other numbers
        return trained(work, device, lambda *_: [compiling.STEP] * padded)


def refuse(*_: object) -> None:
    """Capture nothing, as a device without graphs."""
    raise RuntimeError("operation not permitted")


def trained(
    work: Experiment,
    device: torch.device,
    parts: Callable[[AnyDomain, Loss], Sequence[str]] = lambda *_: (),
    checkpoint: Path | None = None,
) -> tuple[dict[str, Tensor], History]:
    domain, loss = with_loss(work, device)
    model, history = train(domain, loss, checkpoint, compiled=parts(domain, loss))
    return weights(model, loss), history


def with_loss(
    work: Experiment, device: torch.device, data_root: Path | None = None
) -> tuple[AnyDomain, Loss]:
    """Open the domain of an experiment, and make its loss."""
    domain = open_domain(work, 0, data_root, device)
    loss = make_cell_loss(Cell(work, 0, "", {}), domain)
    assert loss is not None
    return domain, loss


def weights(model: nn.Module, loss: Loss) -> dict[str, Tensor]:
    """Return all that a training has changed, on the CPU."""
    state = {**model.state_dict(), **{f"loss.{n}": x for n, x in loss.state_dict().items()}}
    return {name: x.cpu() for name, x in state.items() if isinstance(x, Tensor)}
