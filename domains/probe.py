"""A classifier that is kept with an exported encoder: one linear layer over its embeddings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from contrastbench.domains.exported import EXPORT_FIX, write_tensors
from contrastbench.domains.reading import reading
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.logistic import regularised
from contrastbench.errors import UserError

FILE = "probe.safetensors"


class Probe(NamedTuple):
    """Classes, and the layer whose softmax is their probabilities."""

    classes: list[str]
    weight: Tensor  # (d, classes) float64
    bias: Tensor  # (classes,)

    def probabilities(self, embeddings: Tensor) -> Tensor:
        """Return the probability of each class, (n, classes) float64."""
        return (embeddings.double() @ self.weight + self.bias).softmax(dim=1)


def write_probe(
    folder: Path, classes: Sequence[str], train: Labelled, validation: Labelled | None = None
) -> None:
    """Fit logistic regression on embeddings, as `regularised` does, and keep it with an encoder.

    Its scores are linear, so those of the origin and of each axis tell them all. A class that the
    training rows do not have is left out. A class without a name has its number.
    """
    points = torch.eye(train.x.shape[1] + 1, train.x.shape[1], dtype=torch.float64).roll(1, 0)
    scores = regularised(train, validation).scores(points.to(train.x.device)).cpu()
    seen = scores[0].isfinite()
    scores = scores[:, seen] / (2 if seen.sum() == 2 else 1)  # of two classes: a score and minus it
    numbers = seen.nonzero().flatten().tolist()
    names = [str(classes[k]) if k < len(classes) else str(k) for k in numbers]
    tensors = {"weight": scores[1:] - scores[0], "bias": scores[0]}
    write_tensors(folder / FILE, tensors, {"classes": json.dumps(names)})


def read_probe(folder: Path) -> Probe:
    path = folder / FILE
    if not path.is_file():
        raise UserError(f"{folder} has no classifier: export an encoder of data with classes")
    with reading(path, EXPORT_FIX), safe_open(path, "pt") as file:
        classes = json.loads(file.metadata()["classes"])
        weight, bias = (file.get_tensor(name) for name in ("weight", "bias"))
        if weight.shape[1:] != (len(classes),) or bias.shape != (len(classes),):
            raise ValueError(f"{len(classes)} classes for a layer of shape {tuple(weight.shape)}")
    return Probe(classes, weight, bias)
