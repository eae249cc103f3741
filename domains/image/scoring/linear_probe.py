"""Linear classifiers trained on views: of a frozen encoder, or with it by a share of the labels."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from contrastbench.domains.image.data.images import ImageSet, Split
from contrastbench.domains.image.networks.exports import Encoder
from contrastbench.domains.image.preprocessing import Model, Preprocessing
from contrastbench.domains.image.recipe import ImageRecipe, Probe
from contrastbench.domains.image.views.policies import Policy, policy
from contrastbench.domains.progress import tracked
from contrastbench.domains.random import generator
from contrastbench.domains.scoring.classifiers import Classifier, accuracy_within

EPOCHS, BATCH = 20, 512
DROPS, DROP = (16, 20), 0.2  # epochs after which the rates are a fifth


def optimizer_of(probe: Probe, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    lr, decay = probe.lr, probe.weight_decay
    if probe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr, weight_decay=decay, fused=True)
    return torch.optim.SGD(
        parameters, lr, probe.momentum, weight_decay=decay, nesterov=probe.nesterov, fused=True
    )


def first_weights(probe: Probe, columns: int, classes: int) -> nn.Linear:
    head = nn.Linear(columns, classes)
    if probe.deviation is not None:
        nn.init.normal_(head.weight, std=probe.deviation)
        nn.init.zeros_(head.bias)
    return head


def policy_of(probe: Probe, recipe: ImageRecipe) -> Policy:
    kind = policy(probe.views, recipe.size)
    if probe.views == "none" or recipe.blur is None:
        return kind
    return replace(kind, blur=recipe.blur)


def train_probe(
    probe: Probe,
    model: Model,
    images: Split,
    columns: int,
    preprocessing: Preprocessing,
    kind: Policy,
    seed: int,
    score: Callable[[Model, Classifier], None] = lambda model, classifier: None,
) -> tuple[Model, Classifier]:
    """The encoder with the statistics it then has, and the classifier after the last epoch.

    The given model is left as it is. The seed draws weights, order and views; `score` gets both
    after every epoch, and leaves them as they are.
    """
    model, device = copy.deepcopy(model).requires_grad_(False), images.labels.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = first_weights(probe, columns, int(images.labels.max()) + 1).to(device)
    classifier = Classifier(head)
    optimizer = optimizer_of(probe, head.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, probe.epochs)
    for epoch in tracked(range(probe.epochs), "linear classifier"):
        model.train(probe.statistics_move)
        rng = generator(device, seed, epoch)
        order = torch.randperm(len(images), generator=rng, device=device)
        for view, y in preprocessing.viewed(images, order.split(probe.batch), kind, rng):
            optimizer.zero_grad()
            cross_entropy(head(model.features(view)), y).backward()
            optimizer.step()
        if probe.cosine:
            schedule.step()
        score(model.eval(), classifier)
    return model, classifier


class Rates(NamedTuple):
    """Base learning rates, of batches of 256, for a share of the labels."""

    share: float
    encoder: float
    head: float


FINE_TUNING_RATES = (Rates(0.01, 0.01, 0.2), Rates(0.1, 0.08, 0.03))


def semi_supervised(opened: Encoder, images: ImageSet, seed: int) -> dict[str, float]:
    """Accuracies in percent, of the first class and of the first five, with 1 % and 10 % of labels.

    A linear classifier on top, both trained on crops and flips of so many training images for 20
    epochs: SGD in batches of 512 without weight decay, a base rate each for encoder and classifier,
    a fifth of both after epoch 16 (Lee and Shin 2022, appendix B). Open there: the momentum, 0.9,
    and how base rates are scaled, by the batch over 256 as those of its linear evaluation. The seed
    draws the images, at least one of each class, where the paper has SimCLR's lists of ImageNet.
    """
    accuracies = {}
    for rates in FINE_TUNING_RATES:
        part = labelled_part(images.train, rates.share, seed)
        scores, y = tuned(opened, part, images.test, len(images.classes), rates, seed)
        for first in (1, 5):
            name = f"{rates.share:.0%}_top-{first}"
            accuracies[name] = accuracy_within(scores, y, first)
    return accuracies


def labelled_part(images: Split, share: float, seed: int) -> Split:
    """Draw a share of each class by the seed, at least one image each."""
    # the seed alone would draw the images that validation held out of the training
    rows = torch.randperm(len(images), generator=generator(torch.device("cpu"), seed, 0, 0, 2))
    labels = images.labels.cpu()[rows]
    members = [rows[labels == label] for label in labels.unique()]
    kept = torch.cat([own[: max(1, round(share * len(own)))] for own in members])
    return images.select(kept.to(images.labels.device))


def linear_head(opened: Encoder, images: Split, classes: int, seed: int) -> nn.Linear:
    first = images.select(torch.zeros_like(images.labels[:1]))
    columns = opened.preprocessing.features(opened.network, first).x.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(columns, classes)


def tuned(
    opened: Encoder, train: Split, test: Split, classes: int, rates: Rates, seed: int
) -> tuple[Tensor, Tensor]:
    """(n, classes) scores of the test images after the training, and their classes."""
    model, seen = copy.deepcopy(opened.network), opened.preprocessing
    head = linear_head(opened, train, classes, seed).to(train.labels.device)
    groups = [  # base rates are scaled to the batch
        {"params": model.parameters(), "lr": rates.encoder * BATCH / 256},
        {"params": head.parameters(), "lr": rates.head * BATCH / 256},
    ]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, DROPS, gamma=DROP)
    for epoch in tracked(range(EPOCHS), f"fine-tuning by {rates.share:.0%}"):
        model.train()
        rng = generator(train.labels.device, seed, epoch)
        order = torch.randperm(len(train), generator=rng, device=rng.device)
        rows = order.chunk(-(-len(train) // BATCH))  # of 512 or a little fewer images each
        for view, y in seen.viewed(train, rows, policy("none", seen.size), rng):
            optimizer.zero_grad()
            cross_entropy(head(model.features(view)), y).backward()
            optimizer.step()
        schedule.step()
    x, y = seen.features(model, test, "features of test images")
    return head(x).detach(), y
