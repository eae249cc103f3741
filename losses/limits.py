"""Limits: settings at which a loss is another loss, declared once beside each loss.

A registered loss declares `limits` from the names in this module alone, so they can be read from
its source without importing torch. Each declaration is a law: `bench check-loss` compares values
and gradients. Rows of a table that are one loss by an exact limit run once.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from math import inf as inf  # for the declarations
from typing import Any

from contrastbench.losses.pairing import Pairing

# how far a value may be off, relative to the largest or to 1
EXACT_TOLERANCE, APPROACH_TOLERANCE = 1e-9, 1e-5


@dataclass(frozen=True)
class Towards:
    """A value that a parameter approaches.

    >>> str(Towards(inf, near=1e6))
    '-> inf'
    """

    limit: float  # which may be infinite or out of the parameter's range
    near: float  # so close to it that the law holds within 1e-5

    def __str__(self) -> str:
        return f"-> {self.limit:g}"


@dataclass(frozen=True)
class Limit:
    """A loss that another loss becomes.

    Parameters that `params` does not name have the same value in both losses, by name.

    >>> print(Limit("infonce", {"sigma": Towards(inf, near=1e6)}, constant=True))
    infonce + constant for sigma -> inf
    """

    to: str  # the name of the loss that it becomes
    at: Mapping[str, Towards | Any] = field(default_factory=dict)  # where, exactly or `Towards`
    params: Mapping[str, Any] = field(default_factory=dict)  # of the loss that it becomes
    constant: bool = False  # up to one of the batch size and of parameters, never of embeddings
    factor: str = ""  # a parameter of its own whose value it multiplies that loss by
    gradient_only: bool = False  # whether values differ, as where weights are detached
    positive_in_denominator: bool | None = None  # of the pairings for which it holds; None: both
    mean_over_negatives: bool | None = None
    one_positive: bool = False  # whether only where each anchor has one positive
    at_start: bool = False  # whether only before its own parameters have learned

    @property
    def exact(self) -> bool:
        """Return whether the loss can be had at the limit itself."""
        return not any(isinstance(value, Towards) for value in self.at.values())

    @property
    def same_training(self) -> bool:
        """Return whether both losses have one gradient, at each step of a training."""
        return not (self.factor or self.at_start)

    @property
    def tolerance(self) -> float:
        """Return how far values may be off; a parameter starts as a float32 number."""
        return EXACT_TOLERANCE if self.exact and not self.at_start else APPROACH_TOLERANCE

    @property
    def near(self) -> dict[str, Any]:
        """Parameters at which the law is tested: the exact values, or values near the limit."""
        return {k: v.near if isinstance(v, Towards) else v for k, v in self.at.items()}

    def holds(self, pairing: Pairing | None) -> bool:
        """Return whether it holds under that pairing; None stands for all pairings."""
        for name in ("positive_in_denominator", "mean_over_negatives"):
            wanted = getattr(self, name)
            if wanted is not None and (pairing is None or getattr(pairing, name) != wanted):
                return False
        return not self.one_positive or (pairing is not None and pairing.one_positive)

    def target(self, params: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
        """The parameters of the other loss, which has those names, where this one has `params`."""
        return {k: v for k, v in params.items() if k in names} | dict(self.params)

    def is_at(self, params: Mapping[str, Any]) -> bool:
        return self.exact and all(params.get(name) == value for name, value in self.at.items())

    @property
    def setting(self) -> str:
        """The own parameters at which it holds, for people.

        >>> Limit("infonce", {"tau_plus": 0}).setting
        'tau_plus = 0'
        """
        return ", ".join(
            f"{k} {v}" if isinstance(v, Towards) else f"{k} = {v}" for k, v in self.at.items()
        )

    @property
    def where(self) -> str:
        """The pairings for which it holds, for people; empty: all of them."""
        place = {None: "", True: "inside the denominator", False: "outside the denominator"}
        position = place[self.positive_in_denominator]
        if not position:
            return "one positive" if self.one_positive else ""
        return f"{'one' if self.one_positive else 'the'} positive {position}"

    @property
    def formula(self) -> str:
        """The loss that it becomes, with factor, parameters and constant, for people."""
        named = ", ".join(f"{key}={value}" for key, value in self.params.items())
        text = f"{self.to}({named})" if named else self.to
        text = f"{self.factor} * {text}" if self.factor else text
        return f"gradient of {text}" if self.gradient_only else text + " + constant" * self.constant

    def __str__(self) -> str:
        setting = f" for {self.setting}" if self.at else ""
        start = " at the start" if self.at_start else ""
        return f"{self.formula}{setting}{start}" + (f" with {self.where}" if self.where else "")


Limits = tuple[Limit, ...]


def reduces(*limits: Limit) -> Limits:
    """Declare the limits of a loss."""
    return limits
