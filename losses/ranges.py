"""Ranges of parameters: declared once beside each loss, read by constructors, lists and tuning.

A registered loss declares `ranges`, one entry for each argument of its constructor, from the names
in this module alone: so they can be read from its source without importing torch. A user's own loss
does the same.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

from contrastbench.errors import UserError


@dataclass(frozen=True)
class Number:
    """Finite numbers between two bounds.

    Raises:
        UserError: the bounds are no interval, or the search would leave them.

    >>> str(Number(low=0, high=1, closed="high"))
    '> 0 and <= 1'
    """

    low: float = -math.inf
    high: float = math.inf
    closed: bool | str = False  # True if both bounds are allowed values, "low" or "high" if one is
    tune: tuple[float, float] | None = None  # the interval that is worth searching
    log: bool = False  # whether to search it evenly on a logarithmic scale
    excluded: tuple[float, str] | None = None  # a number that is not allowed, and the reason
    kind = "a finite number"  # no field

    def __post_init__(self) -> None:
        if self.closed not in (True, False, "low", "high"):
            raise UserError(f"closed={self.closed!r}: give True, False, 'low' or 'high'")
        if not self.low < self.high:
            raise UserError(f"low={self.low:g} is not below high={self.high:g}")
        if self.tune is None:
            return
        first, last = self.tune
        if not (self.low <= first <= last <= self.high and math.isfinite(last - first)):
            raise UserError(f"tune={self.tune} is no interval of numbers {self}".rstrip())
        if self.log and first <= 0:
            raise UserError(f"tune={self.tune} is searched by factors (log=True): begin above zero")

    def check(self, name: str, value: Any, params: Mapping[str, Any]) -> float:
        """The value as a float; an error that names the range if it is outside."""
        if self.excluded and value == self.excluded[0]:
            raise UserError(f"{name} must not be {self.excluded[0]:g}: {self.excluded[1]}")
        number = not isinstance(value, bool) and isinstance(value, Real)
        if number and abs(value) <= sys.float_info.max and value in self:
            return float(value)
        raise UserError(f"{name} must be {f'{self.kind} {self}'.strip()}, got {value!r}")

    def __contains__(self, value: Any) -> bool:
        return bool(
            self.low < value < self.high
            or (value == self.low and self.closed in (True, "low"))
            or (value == self.high and self.closed in (True, "high"))
        )

    def __str__(self) -> str:
        bounds = [
            f"{sign}{'=' * (self.closed in (True, end))} {bound:g}"
            for end, sign, bound in (("low", ">", self.low), ("high", "<", self.high))
            if math.isfinite(bound)
        ]
        return " and ".join(bounds) + (f" but not {self.excluded[0]:g}" if self.excluded else "")


@dataclass(frozen=True)
class Whole(Number):
    """Whole numbers between two bounds, which are allowed values.

    >>> str(Whole(1, 9)), Whole(1).check("size", 64.0, {})
    ('>= 1 and <= 9', 64)
    """

    closed: bool | str = True
    kind = "a whole number"

    def check(self, name: str, value: Any, params: Mapping[str, Any]) -> int:
        """The value as an int; an error that names the range if it is outside, or a fraction."""
        number = super().check(name, value, params)
        if not number.is_integer():
            raise UserError(f"{name} must be {f'{self.kind} {self}'.strip()}, got {value!r}")
        return int(number)


@dataclass(frozen=True)
class Choice:
    """One of some texts; all of them are worth a trial.

    >>> str(Choice("chain", "star"))
    'chain or star'
    """

    choices: tuple[str, ...]

    def __init__(self, *choices: str) -> None:
        object.__setattr__(self, "choices", choices)

    def check(self, name: str, value: Any, params: Mapping[str, Any]) -> str:
        if isinstance(value, str) and value in self.choices:
            return value
        raise UserError(f"{name} must be one of {', '.join(self.choices)}, got {value!r}")

    def __str__(self) -> str:
        *first, last = self.choices
        return " or ".join([", ".join(first), last] if first else [last])


@dataclass(frozen=True)
class Given:
    """A range that depends on the value of another parameter, a choice that is checked before it.

    >>> str(Given("weight", {"chi2": Number(low=0), "gaussian": Number()}))
    '> 0 if weight is chi2'
    """

    other: str
    ranges: Mapping[str, Number]

    def check(self, name: str, value: Any, params: Mapping[str, Any]) -> float:
        return self.ranges[params[self.other]].check(name, value, params)

    def __str__(self) -> str:
        cases: dict[str, list[str]] = {}
        for value, numbers in self.ranges.items():
            cases.setdefault(str(numbers), []).append(value)
        return "; ".join(
            f"{bounds} if {self.other} is {Choice(*values)}"
            for bounds, values in cases.items()
            if bounds
        )


Range = Number | Choice | Given


def declare(**ranges: Range) -> Mapping[str, Range]:
    """The ranges of a loss's parameters, by name."""
    return MappingProxyType(ranges)


# Papers choose temperatures between 0.02 (sentences) and 1; float32 holds exp(1 / 0.02).
TEMPERATURE = Number(low=0, tune=(0.02, 1), log=True)
VARIANT = Choice("official_code", "paper")
# of CPC and its kin; RényiCL chooses among powers of two, 1 / 65536 for large batches
SKEW = Number(low=0, high=1, closed=True, tune=(2**-16, 0.5), log=True)
ORDER = Number(
    low=0,
    tune=(1.1, 3),
    excluded=(1, "the Rényi divergence of order 1 is the KL divergence, losses mlcpc and dv"),
)
CLASS_PRIOR = Number(low=0, high=1, closed="low", tune=(0.01, 0.3))  # 0.1 with ten classes
SCORE = Number(tune=(0, 1))  # a cosine, or beyond all of them
SHAPE = Number(low=0, tune=(0.5, 4))  # of the densities of ADNCE's Table 11


def check_ranges(ranges: Mapping[str, Range], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as a loss keeps them; one that has no range is not looked at.

    >>> check_ranges({"form": Choice("chain", "star")}, {"form": "ring"})
    Traceback (most recent call last):
    contrastbench.errors.UserError: form must be one of chain, star, got 'ring'
    """
    names = [name for name in params if name in ranges]
    names.sort(key=lambda name: isinstance(ranges[name], Given))
    return {**params, **{name: ranges[name].check(name, params[name], params) for name in names}}


def in_range(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    closed: bool | str = False,
) -> float:
    """The value if it is a finite number between low and high.

    >>> in_range("temperature", 0.5, low=0)
    0.5
    >>> in_range("temperature", float("nan"), low=0)
    Traceback (most recent call last):
    contrastbench.errors.UserError: temperature must be a finite number > 0, got nan
    """
    return Number(low, high, closed).check(name, value, {})
