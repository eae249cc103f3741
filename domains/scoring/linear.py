"""RényiCL's linear probe: softmax regression by SGD, scaled to suit every embedding, or plain."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, MultiStepLR

from contrastbench.domains.progress import tracked
from contrastbench.domains.random import generator
from contrastbench.domains.reading import refuse
from contrastbench.domains.scoring.classifiers import Classifier, Labelled, accuracy, standardiser

RATES = (1.0, 3.0, 5.0)
EPOCHS = 100
BATCH = 256
# of rows: at 1 the largest rate always won and was still too small, at 16 each wins at times
MEAN_SQUARE = 16
PLAIN_BATCH = 512
PLAIN_DROPS = (80, 90, 95)  # epochs after which the rate is a fifth

# of an optimizer over so many steps
MakeSchedule = Callable[[torch.optim.Optimizer, int], LRScheduler]


def linear(train: Labelled, validation: Labelled, seed: int = 0) -> Classifier:
    """Softmax regression by SGD: 100 epochs, momentum 0.9, cosine, learning rate 1, 3 or 5.

    The rate is the one that is best on the validation rows, the smallest of equals. Columns are
    standardised and then scaled by one number, so that these rates suit embeddings of any size and
    width. Batches of 256, weights from zero, rows shuffled by the seed.
    """
    standardise, share = standardiser(train.x), math.sqrt(MEAN_SQUARE / train.x.shape[1])

    def scaled(x: Tensor) -> Tensor:
        return standardise(x) * share

    heads = train_heads(Labelled(scaled(train.x), train.y), seed, BATCH, CosineAnnealingLR)
    return best_head(heads, scaled, validation)


def plain_linear(train: Labelled, validation: Labelled, seed: int = 0) -> Classifier:
    """Fit a linear classifier on unscaled embeddings, as RényiCL prints (appendix B.5).

    100 epochs at learning rate 1, 3 or 5. It leaves the rest open; as in i-Mix's code for tables:
    batches of 512, momentum 0.9, a fifth of the rate after 80, 90 and 95 epochs. Weights start from
    zero; rows are shuffled by the seed.
    """
    heads = train_heads(train, seed, PLAIN_BATCH, steps_down)
    return best_head(heads, lambda x: x, validation)


def best_head(
    heads: Sequence[nn.Linear], features: Callable[[Tensor], Tensor], validation: Labelled
) -> Classifier:
    held_out = Labelled(features(validation.x), validation.y)
    scores = [accuracy(Classifier(head), held_out) for head in heads]
    best = scores.index(max(scores))
    fault = f" diverged at learning rate {RATES[best]:g}, the best of its three"
    fix = ": use the classifier linear, which scales the embeddings"
    diverged = not bool(heads[best].weight.isfinite().all())
    refuse("the linear classifier", (diverged, fault + fix))
    details = {"lr": RATES[best], "validation_by_lr": scores}
    return Classifier(lambda x: heads[best](features(x)), details)


def steps_down(optimizer: torch.optim.Optimizer, steps: int) -> LRScheduler:
    return MultiStepLR(optimizer, [epoch * steps // EPOCHS for epoch in PLAIN_DROPS], gamma=0.2)


@torch.no_grad()
def train_heads(train: Labelled, seed: int, batch: int, schedule: MakeSchedule) -> list[nn.Linear]:
    """One linear layer for each learning rate, all trained on the same batches.

    The gradients are autograd's to the bit, in half its time or less.
    """
    columns, classes = train.x.shape[1], int(train.y.max()) + 1
    heads = [nn.Linear(columns, classes, device=train.x.device) for _ in RATES]
    for parameter in (p for head in heads for p in head.parameters()):
        nn.init.zeros_(parameter)
    pairs = zip(heads, RATES, strict=True)
    groups = [{"params": head.parameters(), "lr": rate} for head, rate in pairs]
    optimizer = torch.optim.SGD(groups, momentum=0.9, fused=True)
    rates = schedule(optimizer, EPOCHS * math.ceil(len(train.y) / batch))
    for epoch in tracked(range(EPOCHS), "linear classifier"):
        rng = generator(train.x.device, seed, epoch)
        order = torch.randperm(len(train.y), generator=rng, device=train.x.device)
        for rows in order.split(batch):
            x, y = train.x[rows], train.y[rows]
            share = (-x.new_ones(()) / len(x)).expand(len(x), 1)
            upstream = x.new_zeros(len(x), classes).scatter_(1, y.unsqueeze(1), share)
            for head in heads:
                logs = head(x).log_softmax(dim=1)
                slope = torch._log_softmax_backward_data(upstream, logs, 1, logs.dtype)
                head.weight.grad, head.bias.grad = slope.T @ x, slope.sum(dim=0)
            optimizer.step()
            rates.step()
    return [head.requires_grad_(False) for head in heads]


def pseudo_inverse(
    train: Labelled, validation: Labelled | None = None, seed: int = 0
) -> Classifier:
    """RényiCL's probe for Higgs: linear regression on one-hot classes by the pseudo-inverse.

    By the normal equations in float64: the matrix to invert is as large as a row, not as the table.
    """
    standardise = standardiser(train.x.double())
    x = standardise(train.x.double())
    targets = one_hot(train.y).double()
    weight = torch.linalg.pinv(x.T @ x, hermitian=True) @ (x.T @ targets)
    bias = targets.mean(dim=0)
    return Classifier(lambda rows: standardise(rows.double()) @ weight + bias)
