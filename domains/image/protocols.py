"""Any encoder scored on any set of images: `bench score`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from contrastbench.domains.image.data import load
from contrastbench.domains.image.domain import check_fits_classifiers
from contrastbench.domains.image.encoders import open_encoder
from contrastbench.domains.image.evaluation import split
from contrastbench.domains.image.fine_tuning import semi_supervised
from contrastbench.domains.scoring.classifiers import Labelled, accuracy
from contrastbench.domains.scoring.few_shot import few_shot
from contrastbench.domains.scoring.logistic import regularised, transferred
from contrastbench.domains.scoring.neighbours import neighbours
from contrastbench.domains.scoring.retrieval import retrieval

VALIDATION = 0.1  # of the training images, by which classifiers are chosen
NEIGHBOURS, TEMPERATURE = 200, 0.5
FINE_TUNED = "semi-supervised"  # the one that trains the encoder too
OF_TEST = ("few-shot", "retrieval")  # these look at test images alone


class Features(NamedTuple):
    """What an encoder makes of the parts of a set."""

    train: Labelled
    validation: Labelled
    test: Labelled
    seed: int


def linear(seen: Features) -> dict[str, float]:
    """Logistic regression on standardised features, its C the best on validation images."""
    return {"accuracy": accuracy(regularised(seen.train, seen.validation), seen.test)}


def knn(seen: Features) -> dict[str, float]:
    """Weighted neighbours among training and validation images."""
    both = Labelled(*map(torch.cat, zip(seen.train, seen.validation, strict=True)))
    return {"accuracy": accuracy(neighbours(both, NEIGHBOURS, TEMPERATURE), seen.test)}


def transfer(seen: Features) -> dict[str, float]:
    """RényiCL's: L-BFGS, one of 45 C, refitted with the validation images."""
    return transferred(seen.train, seen.validation, seen.test)


PROTOCOLS: dict[str, Callable[[Features], dict[str, float]]] = {
    "linear": linear,
    "knn": knn,
    "transfer": transfer,
    "few-shot": lambda seen: few_shot(seen.test, seen.seed),
    "retrieval": lambda seen: retrieval(seen.test),
}


def score(
    encoder: str, dataset: str, by: str, seed: int, data_root: Path | None, device: torch.device
) -> dict[str, float]:
    """The metrics of an encoder on a set, in percent.

    Args:
        encoder: a folder that `--export` wrote, or `torchvision:NAME`.
        dataset: as `bench run` takes it.
        by: one of `PROTOCOLS`, or `FINE_TUNED`.
        seed: of the validation part, and of episodes.
        data_root: a folder that may hold data and weights.
        device: where it is embedded.

    Raises:
        UserError: no such encoder or set, or its test classes are not those of its training part.
    """
    opened = open_encoder(encoder, data_root, device)
    model, seen = opened.model, opened.preprocessing
    images, _ = load(dataset, seen.size, data_root, device)
    if by == FINE_TUNED:
        check_fits_classifiers(dataset, images)
        return semi_supervised(opened, images, seed)
    test = seen.features(model, images.test, "features of test images")
    if by in OF_TEST:
        return PROTOCOLS[by](Features(test, test, test, seed))
    check_fits_classifiers(dataset, images)
    parts = split(images.train, VALIDATION, seed)
    train, validation = (seen.features(model, part) for part in parts if part is not None)
    return PROTOCOLS[by](Features(train, validation, test, seed))
