"""Images of several classes: a binary classifier for each, and VOC2007's mean average precision."""

from collections.abc import Sequence

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from contrastbench.domains.scoring import logistic
from contrastbench.domains.scoring.classifiers import Labelled, joined_rows, percent
from contrastbench.domains.scoring.logistic import TRANSFER_GRID, TRANSFER_ITERATIONS

LEVELS = 11  # of recall: 0, 0.1, ..., 1


def eleven_point_precision(scores: Tensor, y: Tensor) -> float:
    r"""VOC2007's 11-point average precision of one class, in percent.

    .. math:: \frac{1}{11} \sum_{r \in \{0, 0.1, \ldots, 1\}} \max_{k : R_k \ge r} P_k

    Everingham et al., "The PASCAL Visual Object Classes Challenge 2007", section 3.4.1: P_k and R_k
    are precision and recall of the k images with the largest scores. Images marked 0 are neither
    right nor wrong. Of equal scores the first image comes first.

    Args:
        scores: (n,) the larger, the more an image is of the class.
        y: (n,) 1 of the class, -1 not, 0 hard to say; one image at least is of the class.

    >>> eleven_point_precision(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([1, -1, 1]))
    84.84848484848484
    """
    said = y != 0
    right = y[said][scores[said].argsort(descending=True, stable=True)] > 0
    hits, levels = right.cumsum(0), torch.arange(LEVELS, device=y.device)[:, None]
    precision = hits.double() / torch.arange(1, len(hits) + 1, device=y.device)
    # whole numbers: a recall of 3/10 is not below 0.3
    reached = (LEVELS - 1) * hits >= levels * hits[-1]
    return percent(precision.where(reached, 0).amax(dim=1))


def transfer_multi_label(train: Labelled, validation: Labelled, test: Labelled) -> dict[str, float]:
    """Mean over classes of VOC2007's average precision, in percent, as RényiCL transfers.

    Lee and Shin 2022, appendix B: L-BFGS, one of 45 C for all classes that is best on the
    validation rows, the smallest of equals; fitted again with these rows. Open there, and ours: a
    logistic regression for each class against the rest, without the rows that are marked 0 for it.
    """
    classes = train.y.shape[1]
    paths = [
        logistic.regularisation_path(of_class(train, c), TRANSFER_GRID, TRANSFER_ITERATIONS)
        for c in range(classes)
    ]
    scores = [mean_average_precision(models, validation) for models in zip(*paths, strict=True)]
    best = scores.index(max(scores))
    both = joined_rows(train, validation)
    models = [path[best] for path in paths]
    for c, model in enumerate(models):
        x, y = of_class(both, c)
        with logistic.unconverged():
            model.fit(x.cpu().numpy(), y.cpu().numpy())
    return {"mean_average_precision": mean_average_precision(models, test), "C": models[0].C}


def of_class(rows: Labelled, c: int) -> Labelled:
    said = rows.y[:, c] != 0
    return Labelled(rows.x[said], rows.y[said, c])


def mean_average_precision(models: Sequence[LogisticRegression], rows: Labelled) -> float:
    x = rows.x.cpu().numpy()
    precisions = [
        eleven_point_precision(torch.from_numpy(model.decision_function(x)), rows.y[:, c].cpu())
        for c, model in enumerate(models)
    ]
    return sum(precisions) / len(precisions)
