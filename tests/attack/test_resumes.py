"""A training that is resumed at any of its steps goes on to the bit.

Every checkpoint of a whole training is kept; from each one the next step leads to the next one.
"""

import os
import shutil
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from campaign import times
from contrastbench.benchmarks.running import checkpoints, training
from contrastbench.domains.registry import declaration, domain_class, make_recipe
from contrastbench.losses import get_loss
from contrastbench.losses.base import Loss

SMALL = {"limit": 48, "batch_size": 16, "epochs": times(4)}
DOMAINS: dict[str, dict[str, Any]] = {
    "graph": {},
    "image": {},
    "sentence": {"eval_every": 7},
    "tabular": {"limit": 96},
}
LEARNED = Path(__file__).parents[1] / "losses" / "learned.py"


def domain(name: str) -> training.AnyDomain:
    """A small one, opened anew."""
    about = declaration(name)
    recipe = make_recipe(name, {**about.tiny, **SMALL, **DOMAINS[name]})
    return domain_class(name)(about.default, recipe, 0, None, torch.device("cpu"))


def state(path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All that a checkpoint holds."""
    found = checkpoints.read(path)
    assert found
    return {
        k: t.reshape(-1).view(torch.uint8).numpy().tobytes() for k, t in found[0].items()
    }, found[1]


def every_checkpoint(
    name: str, loss: Loss, path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """Checkpoints of all steps, the first of them after the first step."""
    kept: list[Path] = []
    write = checkpoints.write

    def keep(path: Path, *what: Any) -> None:
        write(path, *what)
        kept.append(path.with_name(f"{len(kept)}.kept"))
        shutil.copy(path, kept[-1])

    with monkeypatch.context() as patch:
        patch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", -1)
        patch.setattr(checkpoints, "write", keep)
        training.train(domain(name), loss, path)
    return kept


def one_step(name: str, loss: Loss, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on from the checkpoint until SIGTERM in the next step."""
    update = training.Run.update

    def kill(run: training.Run, value: torch.Tensor) -> None:
        update(run, value)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(training.Run, "update", kill)
        with pytest.raises(SystemExit):
            training.train(domain(name), loss, path)


@pytest.mark.parametrize(
    ("name", "loss"),
    [*((name, "adnce") for name in DOMAINS), ("tabular", f"{LEARNED}:Temperature")],
)
def test_resumed_at_every_step(
    name: str,
    loss: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: Callable[[str], None],
) -> None:
    path = tmp_path / "it.safetensors"

    def made() -> Loss:
        torch.manual_seed(0)
        return get_loss(loss)

    kept = every_checkpoint(name, made(), path, monkeypatch)
    assert len(kept) >= times(8)
    for before, after in pairwise(kept):
        shutil.copy(before, path)
        one_step(name, made(), path, monkeypatch)
        assert state(path) == state_of(after, path), before.name
    found(
        f"training: {name} with {loss.rpartition(':')[2]} resumed at {len(kept)} steps: bit-equal"
    )


def state_of(kept: Path, path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """A kept checkpoint, read under the name that it is of."""
    shutil.copy(kept, path)
    return state(path)
