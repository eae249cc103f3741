"""What an accuracy hides where classes are skewed: balanced accuracy, macro F1 and AUROC."""

import numpy as np

from contrastbench.domains.samples import Array


def class_metrics(truth: Array, predicted: Array, scores: Array | None = None) -> dict[str, float]:
    """Return balanced accuracy, macro F1 and, with scores, AUROC, in percent.

    Balanced accuracy is the mean over true classes of the share that is found, macro F1 the mean of
    F1 over classes that are true or found somewhere. AUROC is the mean over true classes of the
    area of one class against the rest; without two true classes there is none.

    Args:
        truth: (n,) classes 0, 1, ...
        predicted: (n,) those that a classifier gives.
        scores: (n, classes) the larger, the likelier the class; a class without a column has 50 %.
            Of two classes (n,), as scikit-learn has those of the second alone.

    >>> class_metrics(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))["balanced_accuracy"]
    50.0
    """
    known = int(max(truth.max(), predicted.max())) + 1
    given, true = (np.bincount(classes, minlength=known) for classes in (predicted, truth))
    right = np.bincount(truth[truth == predicted], minlength=known)
    either = given + true > 0
    shares = {
        "balanced_accuracy": (right[true > 0] / true[true > 0]).mean(),
        "macro_f1": (2 * right[either] / (given + true)[either]).mean(),
    }
    if scores is not None and (true > 0).sum() > 1 and not np.isnan(scores).any():
        shares["auroc"] = one_against_rest(truth, scores)
    return {name: 100 * float(share) for name, share in shares.items()}


def one_against_rest(truth: Array, scores: Array) -> float:
    """Return the mean over classes of the area under one's curve against all others.

    By the ranks of the class's own samples (Mann and Whitney 1947).
    """
    from scipy.stats import rankdata

    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    present, counts = np.unique(truth, return_counts=True)
    own = truth[:, None] == present
    columns = np.pad(scores, ((0, 0), (0, max(0, present[-1] + 1 - scores.shape[1]))))
    ranks = (rankdata(columns[:, present], axis=0) * own).sum(axis=0)
    wins = ranks - counts * (counts + 1) / 2
    return float((wins / (counts * (len(truth) - counts))).mean())


def largest_share(truth: Array) -> float:
    return 100 * int(np.unique(truth, return_counts=True)[1].max()) / len(truth)
