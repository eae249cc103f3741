"""Rank correlation, by which similarities of sentence pairs are scored."""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from contrastbench.errors import UserError

ROUNDING = 1e-9  # of a cosine, computed in float64 of float32 numbers
Array = np.ndarray[Any, np.dtype[Any]]


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation; ties share their mean rank.

    A row that is constant but for rounding gives 0: the order of what rounding left is chance.

    >>> spearman(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0]))
    1.0
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("similarities are not finite: the encoder diverged")
    return 0.0 if constant(x) or constant(y) else float(spearmanr(x, y).statistic)


def constant(row: Array) -> bool:
    """Return whether all numbers are equal but for rounding."""
    return bool(np.ptp(row) <= ROUNDING * max(1.0, np.abs(row).max()))
