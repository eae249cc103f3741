"""Means with spread, paired tests and Holm's correction: plain numbers."""

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from statistics import fmean
from typing import Any

import numpy as np

from contrastbench.errors import plural

ALPHA = 0.05
POWER = 0.8  # chance to notice an effect that is there
DIGITS = 9  # accuracies are quotients: equal effects may differ in their last bits


def compiled_functions() -> Any:
    """Return the compiled functions of `scipy.special` without the rest of it, where that can be.

    The rest imports numpy's Fortran compiler and more, a sixth of the time of a comparison.
    """
    name, compiled = "scipy.special", "scipy.special._ufuncs"
    spec = None if name in sys.modules else find_spec(name)
    if spec:
        sys.modules[name] = module_from_spec(spec)  # none of its own code has run
        with suppress(ImportError):
            import_module(compiled)
        del sys.modules[name]
    return sys.modules.get(compiled) or import_module(name)


special = compiled_functions()


@dataclass(frozen=True)
class PValue:
    """A two-sided p, and why there is none."""

    p: float | None
    why: str = ""


def mean_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation (ddof 1); one value has no deviation.

    >>> mean_std([1.0, 3.0])
    (2.0, 1.4142135623730951)
    """
    return fmean(values), float(np.std(values, ddof=1)) if len(values) > 1 else None


def corrected_t(differences: Sequence[float], ratio: float) -> PValue:
    """Corrected resampled t-test of paired differences (Nadeau and Bengio 2003).

    t = mean / sqrt((1/n + ratio) variance) with n - 1 degrees of freedom. Training sets of
    different splits overlap, so their differences vary too little; the ratio makes up for it.
    Repeated k-fold: all n = repeats * k differences and 1 / (k - 1) (Bouckaert and Frank 2004).
    Ratio 0 is the ordinary paired t-test, for runs that share one split.

    Args:
        differences: one for each split.
        ratio: size of a test set over that of a training set.

    >>> round(corrected_t([1.0, 2.0, 3.0], ratio=0.0).p, 4)
    0.0742
    """
    d = np.round(differences, DIGITS)
    if len(d) < 2:
        return PValue(None, f"too few: {len(d)} pair{plural(len(d))}")
    if not d.any():
        return PValue(1.0)
    if np.ptp(d) == 0:
        return PValue(None, "all differences are equal: no spread to test against")
    t = d.mean() / math.sqrt((1 / len(d) + ratio) * d.var(ddof=1))
    return PValue(float(2 * special.stdtr(len(d) - 1, -abs(t))))


def critical(freedom: float, alpha: float) -> float:
    """Student's t that is exceeded on both sides together with that chance."""
    return -float(special.stdtrit(freedom, alpha / 2))


@cache
def noncentrality(freedom: int, alpha: float) -> float:
    """The shift of t, with that many degrees of freedom, that is noticed with a chance of 80 %.

    Noticed upwards: a t that is significant in the wrong direction is no detection. Given the
    spread, t is normal, and its chance is averaged over quantiles of the spread; scipy's inverse
    never comes back at some small levels.
    """
    quantiles = special.chdtri(freedom, (np.arange(4000) + 0.5) / 4000)
    limits = critical(freedom, alpha) * np.sqrt(quantiles / freedom)
    low, high = limits.min() - 9, limits.max() + 9
    while high - low > 1e-9 * high:  # far below what is shown
        middle = (low + high) / 2
        missed = special.ndtr(limits - middle).mean()
        low, high = (middle, high) if missed > 1 - POWER else (low, middle)
    return float(high)


def holm(ps: Sequence[float | None], to_come: int = 0) -> list[float | None]:
    """Adjust p-values by Holm's step-down method; None is no test.

    The i-th smallest of m times m - i + 1, at least its predecessor's, at most 1. Tests to come are
    counted from the beginning, with a p of 1: so no verdict is lost as they do.

    >>> holm([0.01, 0.04, 0.03]), holm([0.6, None, 0.7]), holm([0.01], to_come=2)
    ([0.03, 0.06, 0.06], [1.0, None, 1.0], [0.03])
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for i, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) + to_come - i) * p))
        adjusted[place] = highest
    return adjusted
