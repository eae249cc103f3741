"""Read how a loss's parameter changes over a training, without torch.

Any number may follow a schedule, `cosine(0.1, 1.0)` or `linear(0.1, 1.0)`. A temperature may be
learned: `learned(0.1)`.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from contrastbench.errors import UserError

CALL_PATTERN = r"(\w+)\s*(?:\((.*)\))?"
LEARNABLE = "temperature"
LEAST_LEARNED = 0.01  # the floor of CLIP's released code, a scale of 100


@dataclass(frozen=True)
class Schedule:
    """A number that goes from one value in the first step to another in the last.

    Args:
        shape: "linear" or "cosine", half a wave.
        start, end: the values of the first and the last step.

    >>> str(Schedule("cosine", 0.1, 1.0)), Schedule("cosine", 0.1, 1.0).at(0.5)
    ('cosine(0.1, 1.0)', 0.55)
    """

    shape: str
    start: float
    end: float

    def at(self, share: float) -> float:
        """Return the value after a share of the steps, from 0 to 1; both ends are exact."""
        rest = 1 - share if self.shape == "linear" else (1 + math.cos(math.pi * share)) / 2
        value = self.start * rest + self.end * (1 - rest)
        return max(min(self.ends), min(value, max(self.ends)))  # rounding stays within the ends

    @property
    def ends(self) -> tuple[float, ...]:
        """Return the first and the last value."""
        return self.start, self.end

    def __str__(self) -> str:
        return f"{self.shape}({self.start!r}, {self.end!r})"


@dataclass(frozen=True)
class Learned:
    """A number that the optimizer moves, and that stays at 0.01 or above.

    Args:
        start: its first value, >= 0.01.
        lr: its learning rate; None: that of the loss, or of the encoder.

    >>> str(Learned(0.1, lr=0.01))
    'learned(0.1, lr=0.01)'
    """

    start: float
    lr: float | None = None

    @property
    def ends(self) -> tuple[float, ...]:
        """Return the values that are known beforehand: the first."""
        return (self.start,)

    def __str__(self) -> str:
        rate = "" if self.lr is None else f", lr={self.lr!r}"
        return f"learned({self.start!r}{rate})"


Course = Schedule | Learned
SCHEDULE_SHAPES = ("linear", "cosine")


def course(name: str, value: Any, default: Any = None) -> Course | None:
    """Return the course that a parameter's text describes; None for what is no such text.

    Args:
        name: the parameter.
        value: a number, or a text such as `cosine(0.1, 1.0)`.
        default: where `learned` begins without a number.

    Raises:
        UserError: the text begins as a schedule, or as `learned`, and goes on otherwise.

    >>> course("temperature", "learned", 0.5), course("temperature", 0.5)
    (Learned(start=0.5, lr=None), None)
    """
    match = re.fullmatch(CALL_PATTERN, value.strip()) if isinstance(value, str) else None
    if not match or not (match[1] in (*SCHEDULE_SHAPES, "learned") or match[2] is not None):
        return None
    kind, inside = match[1], match[2] or ""
    words = [word.strip() for word in inside.split(",")] if inside.strip() else []
    try:
        if kind in SCHEDULE_SHAPES:
            start, end = map(finite, words)
            return Schedule(kind, start, end)
        if kind == "learned":
            return parse_learned(words, default)
    except ValueError:
        pass
    raise UserError(
        f"{name} must be a number, or a schedule such as cosine(0.1, 1.0) or linear(0.1, 1.0)"
        + ", or learned(0.1) or learned(0.1, lr=0.01)" * (name == LEARNABLE)
        + f", got {value!r}"
    )


def parse_learned(words: list[str], default: Any) -> Learned:
    """Return a learned number from the words in its brackets.

    Raises:
        ValueError: they are not a number and a rate.
    """
    rates = [word for word in words if re.match(r"lr\s*=", word)]
    starts = [word for word in words if word not in rates] or [default]
    (start,) = starts
    if len(rates) > 1:
        raise ValueError
    rate = finite(rates[0].partition("=")[2]) if rates else None
    if rate is not None and rate <= 0:
        raise ValueError
    return Learned(finite(start), rate)


def finite(text: Any) -> float:
    """Return the number of a text.

    Raises:
        ValueError: it is not a finite number.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def check_kind(name: str, found: Course) -> None:
    """Raise unless this parameter can take such a course.

    Raises:
        UserError: it is learned and no temperature from 0.01, or a rate that is read once.
    """
    if isinstance(found, Learned) and name != LEARNABLE:
        raise UserError(
            f"{name} must be a number or a schedule, got {found}: only a temperature is learned"
        )
    if isinstance(found, Learned) and found.start < LEAST_LEARNED:
        raise UserError(f"{name} must start >= {LEAST_LEARNED} to be learned, got {found}")
    if name == "lr":
        raise UserError(
            f"lr must be a number, got {found}: the recipe's schedule changes every rate"
        )
