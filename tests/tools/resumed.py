"""A training that is resumed at each of its steps, in one process or in several.

A module of its own, so that new processes find it.
"""

import math
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from contrastbench.benchmarks.running import checkpoints, ranks, training
from contrastbench.benchmarks.running.history import History
from contrastbench.domains.sentence import graded
from contrastbench.losses import get_loss
from contrastbench.losses.base import Loss
from opened import tiny

LEARNED = Path(__file__).parents[1] / "losses" / "learned.py"
DRAWS = LEARNED.with_name("drawing.py")
SCHEDULED = f"infonce + 0.5*{LEARNED}:Warmed"
SMALL = {"limit": 36, "batch_size": 12}
SAMPLES = 64  # no case trains on more
IMAGES = {"width": 0.0625, "projection": (16, 8), "limit": 48}
# MoCo's target has statistics of its own; a model is chosen and scored on the way
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "graph": ("graph", "adnce", {"hidden": 8, "layers": 2, "folds": 2, "score_at": [1]}),
    "image": ("image", "adnce", IMAGES),
    "image, bf16": ("image", "adnce", {**IMAGES, "precision": "bf16"}),
    "image, MoCo": (
        "image",
        "adnce",
        {**IMAGES, "pairing": "query_key", "optimizer": "lars", "lr": 1.0, "warmup": 0.5},
    ),
    "image, chosen": ("image", "adnce", {**IMAGES, "eval_every": 2, "optimizer": "sgd"}),
    "sentence": ("sentence", "adnce", {"eval_every": 2, "max_length": 8, "score_at": [1]}),
    "sentence, draws": ("sentence", f"{DRAWS}:Noise", {"eval_every": 7, "max_length": 8}),
    "tabular": ("tabular", "adnce", {"limit": 60}),
    "tabular, learned": ("tabular", f"{LEARNED}:Counting", {"limit": 60}),
    "tabular, scheduled": ("tabular", SCHEDULED, {"limit": 60}),
    "tabular, memory": ("tabular", "isogclr", {"limit": 60}),
    "tabular, queue": ("tabular", f"0.5*{LEARNED}:Bank", {"limit": 60}),
}
State = tuple[dict[str, bytes], dict[str, Any]]


def opened(case: str, epochs: int) -> training.AnyDomain:
    """A small one, opened anew."""
    name, _, values = CASES[case]
    return tiny(name, **SMALL | values | {"epochs": epochs})


@contextmanager
def few_sentences() -> Iterator[None]:
    """The embedded pairs are scored often."""
    graded.vocabulary()  # of all sentences, also for whoever asks later
    few = {part: graded.graded_pairs(part).few(12) for part in ("dev", "test")}
    sentences = graded.training_sentences()[:64]
    with (
        patch.object(graded, "graded_pairs", few.get),
        patch.object(graded, "training_sentences", lambda: sentences),
    ):
        yield


def made(loss: str) -> Loss:
    """The loss as it is before the first step."""
    torch.manual_seed(0)
    found = get_loss(loss)
    found.prepare_samples(SAMPLES)
    return found


def state(path: Path) -> State:
    """All that a checkpoint holds, but for the time that it took."""
    found = checkpoints.read_checkpoint(path)
    assert found
    tensors = {k: t.reshape(-1).view(torch.uint8).numpy().tobytes() for k, t in found[0].items()}
    return tensors, {name: value for name, value in found[1].items() if name != "seconds"}


@contextmanager
def keeping() -> Iterator[list[Path]]:
    """Copies of the checkpoints that are written, one after each step."""
    kept: list[Path] = []
    write = checkpoints.write_checkpoint

    def keep(path: Path, tensors: checkpoints.Tensors, about: dict[str, Any]) -> None:
        write(path, tensors, about)
        kept.append(path.with_name(f"{about['step']}.kept"))
        shutil.copy(path, kept[-1])

    with (
        patch.object(training, "SECONDS_BETWEEN_CHECKPOINTS", -1),
        patch.object(checkpoints, "write_checkpoint", keep),
    ):
        yield kept


@contextmanager
def stopping(step: int | None = None) -> Iterator[None]:
    """SIGTERM in a step, the next one if none is named, which ends it with a checkpoint."""
    update = training.Run.update

    def stop(run: training.Run, value: torch.Tensor) -> None:
        update(run, value)
        if step in (None, run.history.step):
            os.kill(os.getpid(), signal.SIGTERM)

    with patch.object(training.Run, "update", stop), pytest.raises(SystemExit, match="143"):
        yield


Trained = tuple[torch.nn.Module, History]


def equal(one: Trained, other: Trained) -> bool:
    """Whether two trainings end with the same history, scores and bits of the model."""
    states = [model.state_dict() for model, _ in (one, other)]
    same = all(torch.equal(tensor, states[1][key]) for key, tensor in states[0].items())
    return one[1] == other[1] and same


@few_sentences()
def everywhere(case: str, folder: Path, steps: int, ends: int) -> list[str]:
    """Where a resumed training had another state than the one that was not; ranks do it together.

    From each step the next one leads to the next one's state; from every so many, its `ends`, the
    training goes on to its end.
    """
    path = folder / "it.safetensors"
    epochs = max(2, math.ceil(steps / opened(case, 2).steps()))

    def train() -> Trained:
        return training.train(opened(case, epochs), made(CASES[case][1]), path)

    def laid(kept: Path) -> None:
        ranks.by_first(shutil.copy)(kept, path)

    def is_as(kept: Path) -> bool:
        """Both read under the name that they are of."""
        found = state(path)
        shutil.copy(kept, path)
        return found == state(path)

    with keeping() as written:
        whole = train()
    kept = ranks.by_first(lambda: written)()
    assert len(kept) >= steps
    wrong = []
    for place, (before, after) in enumerate(pairwise(kept)):
        laid(before)
        with stopping():
            train()
        wrong += [f"the step after {before.name}"] * (not ranks.by_first(is_as)(after))
        if place % ends == ends - 1:
            laid(before)
            wrong += [f"the end after {before.name}"] * (not equal(train(), whole))
    return wrong
