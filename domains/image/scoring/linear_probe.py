"""Linear classifiers trained on views, through a frozen encoder."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from contrastbench.domains.image.data.images import Split
from contrastbench.domains.image.preprocessing import Model, Preprocessing
from contrastbench.domains.image.probes import Probe
from contrastbench.domains.image.recipe import ImageRecipe
from contrastbench.domains.image.views.policies import Policy, policy
from contrastbench.domains.progress import tracked
from contrastbench.domains.random import generator
from contrastbench.domains.scoring.classifiers import Classifier


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
