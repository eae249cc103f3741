"""What an accuracy hides where classes are skewed: balanced accuracy, macro F1 and AUROC.

scikit-learn is imported where it scores, as in `svm`.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def class_metrics(truth: Array, found: Array, scores: Array | None = None) -> dict[str, float]:
    """Return balanced accuracy, macro F1 and, with scores, AUROC, in percent, by scikit-learn.

    Balanced accuracy is the mean over true classes of the share that is found, macro F1 the mean of
    F1 over classes that are true or found somewhere. AUROC is the mean over true classes of the
    area of one class against the rest; without two true classes there is none.

    Args:
        truth: (n,) classes 0, 1, ...
        found: (n,) those that a classifier gives.
        scores: (n, classes) the larger, the likelier the class; a class without a column has 50 %.

    >>> class_metrics(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))["balanced_accuracy"]
    50.0
    """
    from sklearn.metrics import f1_score, recall_score

    present = np.unique(truth)
    shares = {
        "balanced_accuracy": recall_score(truth, found, labels=present, average="macro"),
        "macro_f1": f1_score(truth, found, average="macro"),
    }
    if scores is not None and len(present) > 1:
        shares["auroc"] = one_against_rest(truth, scores, present)
    return {name: 100 * float(share) for name, share in shares.items()}


def one_against_rest(truth: Array, scores: Array, present: Array) -> float:
    """Return the mean over classes of the area under one's curve against all others."""
    from sklearn.metrics import roc_auc_score

    known = range(scores.shape[1])
    areas = [roc_auc_score(truth == c, scores[:, c]) if c in known else 0.5 for c in present]
    return float(np.mean(areas))


def largest_share(truth: Array) -> float:
    """Return the percent of samples that are of the largest class."""
    return 100 * int(np.unique(truth, return_counts=True)[1].max()) / len(truth)
