"""Any encoder scored on any set of images: `bench score`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from contrastbench.domains.image.data.datasets import Scoring, scoring
from contrastbench.domains.image.data.images import ImageSet, Split
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.networks.exports import Encoder, open_encoder
from contrastbench.domains.image.sampling import held_out_split
from contrastbench.domains.image.scoring.linear_probe import semi_supervised
from contrastbench.domains.reading import refuse
from contrastbench.domains.scoring import logistic
from contrastbench.domains.scoring.classifiers import Labelled, accuracy, joined_rows, neighbours
from contrastbench.domains.scoring.few_shot import few_shot
from contrastbench.domains.scoring.retrieval import retrieval
from contrastbench.errors import tell

KNN_NEIGHBOURS, KNN_TEMPERATURE = 200, 0.5
KNN_NOTE = (
    f"knn: {KNN_NEIGHBOURS} neighbours among training and validation images; the knn of a record "
    "is another, of its recipe's knn_k among training images"
)
FINE_TUNED = "semi-supervised"  # the one that trains the encoder too
FEW_SHOT, OF_ALL = "few-shot", "few-shot-all"
OF_TEST = (FEW_SHOT, "retrieval")  # these look at test images alone
TRANSFER = "transfer"


class Features(NamedTuple):
    """The features of the parts of a set, by one encoder."""

    train: Labelled
    validation: Labelled
    test: Labelled
    seed: int
    scoring: Scoring


def knn(seen: Features) -> dict[str, float]:
    both = joined_rows(seen.train, seen.validation)
    return {"accuracy": accuracy(neighbours(both, KNN_NEIGHBOURS, KNN_TEMPERATURE), seen.test)}


def transfer(seen: Features) -> dict[str, float]:
    """RényiCL's: L-BFGS, one of 45 C, refitted with the validation images."""
    parts = seen.train, seen.validation, seen.test
    if seen.test.y.ndim > 1:
        return logistic.transfer_multi_label(*parts)
    return logistic.transfer_accuracies(*parts, seen.scoring.metric)


PROTOCOLS: dict[str, Callable[[Features], dict[str, float]]] = {
    # logistic regression on standardised features, its C the best on validation images
    "linear": lambda seen: {
        "accuracy": accuracy(logistic.regularised(seen.train, seen.validation), seen.test)
    },
    "knn": knn,
    TRANSFER: transfer,
    FEW_SHOT: lambda seen: few_shot(seen.test, seen.seed),
    OF_ALL: lambda seen: few_shot(joined_rows(seen.train, seen.test), seen.seed),
    "retrieval": lambda seen: retrieval(seen.test),
}


def score(
    encoder: str, dataset: str, by: str, seed: int, data_root: Path | None, device: torch.device
) -> dict[str, float]:
    """The metrics of an encoder on a set, in percent.

    The encoder is a folder that `--export` wrote, or `torchvision:NAME`. The seed draws the
    validation part and episodes.
    """
    opened = open_encoder(encoder, data_root, device)
    if by == "knn":
        tell(KNN_NOTE)
    return score_opened(opened, dataset, by, seed, data_root, device)


def score_opened(
    opened: Encoder, dataset: str, by: str, seed: int, data_root: Path | None, device: torch.device
) -> dict[str, float]:
    model, seen = opened.network, opened.preprocessing
    images, _ = load_images(dataset, seen.size, data_root, device)
    check_scored_classes(dataset, images, by)
    if by == FINE_TUNED:
        return semi_supervised(opened, images, seed)
    about = scoring(dataset)
    test = seen.features(model, images.test, "features of test images")
    if by == FEW_SHOT and images.drawn:
        tell(
            f"{dataset} has no test part, so episodes are of a fifth of each class: --by {OF_ALL} "
            "draws them from all images, for an encoder that has not been trained on them"
        )
    if by in OF_TEST:
        train = validation = test
    elif by == OF_ALL:
        train = validation = seen.features(model, images.train, "features of training images")
    else:
        parts = fitting_parts(images, about.share, seed)
        train, validation = (seen.features(model, part) for part in parts)
    return PROTOCOLS[by](Features(train, validation, test, seed, about))


def fitting_parts(images: ImageSet, share: float, seed: int) -> list[Split]:
    if not images.validation:
        two = held_out_split(images.train, share, seed, fix="use more images of each class")
        return [part for part in two if part is not None]
    rows = torch.arange(len(images.train), device=images.train.labels.device)
    cut = len(rows) - images.validation
    return [images.train.select(rows[:cut]), images.train.select(rows[cut:])]


def check_scored_classes(dataset: str, images: ImageSet, by: str) -> None:
    if images.test.labels.ndim > 1:
        refuse("", (by != TRANSFER, f"images of {dataset} have several classes: --by {TRANSFER}"))
    elif by not in (*OF_TEST, OF_ALL):
        check_fits_classifiers(dataset, images, "--by retrieval")


def check_fits_classifiers(
    dataset: str, data: ImageSet, fix: str = "--recipe probe=retrieval, or preset=metric"
) -> None:
    """Raise if no test image is of a class that a classifier could have seen."""
    fault = f" tests other classes than it trains, which no classifier has seen: {fix}"
    refuse(dataset, (not bool(torch.isin(data.test.labels, data.train.labels).any()), fault))
