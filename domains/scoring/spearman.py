"""Rank correlation, by which similarities of sentence pairs are scored."""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from contrastbench.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation; ties share their mean rank, a constant row gives 0.

    >>> spearman(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0]))
    1.0
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("similarities are not finite: the encoder diverged")
    return 0.0 if np.ptp(x) == 0 or np.ptp(y) == 0 else float(spearmanr(x, y).statistic)
