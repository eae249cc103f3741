"""RényiCL's linear probe: softmax regression by SGD."""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from contrastbench.domains.base import generator
from contrastbench.domains.progress import Progress
from contrastbench.domains.scoring.classifiers import Classifier, Labelled, accuracy, standardiser

RATES = (1.0, 3.0, 5.0)
EPOCHS = 100
BATCH = 256
# of rows: at 1 the largest rate always won and was still too small, at 16 each wins at times
MEAN_SQUARE = 16


def linear(train: Labelled, validation: Labelled, seed: int = 0) -> Classifier:
    """Softmax regression by SGD: 100 epochs, momentum 0.9, cosine, learning rate 1, 3 or 5.

    The rate is the one that is best on the validation rows, the smallest of equals. Columns are
    standardised and then scaled by one number, so that these rates suit embeddings of any size and
    width. Batches of 256, weights from zero, rows shuffled by the seed.
    """
    standardise, share = standardiser(train.x), math.sqrt(MEAN_SQUARE / train.x.shape[1])
    heads = train_heads(Labelled(standardise(train.x) * share, train.y), seed)

    def classifier(head: nn.Linear) -> Classifier:
        return Classifier(lambda x: head(standardise(x) * share).argmax(dim=1))

    candidates = [classifier(head) for head in heads]
    scores = [accuracy(candidate, validation) for candidate in candidates]
    best = scores.index(max(scores))
    return Classifier(candidates[best].predict, {"lr": RATES[best], "validation_by_lr": scores})


@torch.enable_grad()
def train_heads(train: Labelled, seed: int) -> list[nn.Linear]:
    """One linear layer for each learning rate, all trained on the same batches."""
    columns, classes = train.x.shape[1], int(train.y.max()) + 1
    heads = [nn.Linear(columns, classes, device=train.x.device) for _ in RATES]
    for parameter in (p for head in heads for p in head.parameters()):
        nn.init.zeros_(parameter)
    groups = [
        {"params": head.parameters(), "lr": rate} for head, rate in zip(heads, RATES, strict=True)
    ]
    optimizer = torch.optim.SGD(groups, momentum=0.9, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, EPOCHS * math.ceil(len(train.y) / BATCH)
    )
    with Progress(EPOCHS, "linear classifier") as progress:
        for epoch in range(EPOCHS):
            rng = generator(train.x.device, seed, epoch)
            order = torch.randperm(len(train.y), generator=rng, device=train.x.device)
            for rows in order.split(BATCH):
                x, y = train.x[rows], train.y[rows]
                optimizer.zero_grad()
                torch.stack([cross_entropy(head(x), y) for head in heads]).sum().backward()
                optimizer.step()
                schedule.step()
            progress.step()
    return [head.requires_grad_(False) for head in heads]
