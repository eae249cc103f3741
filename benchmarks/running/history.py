"""The course of a training as plain values, which checkpoints and records hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contrastbench.benchmarks.running.environment import Circumstances


class Diverged(Exception):
    """A loss or a weight is no longer a number.

    Args:
        message: what it is, and when.
        details: the step, and the losses before it, for the record.
    """

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


@dataclass
class History:
    """The course of a training so far, as plain values."""

    step: int = 0
    loss_by_epoch: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # of this epoch's steps
    # step, the domain's validation score
    dev_curve: list[tuple[int, float]] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)  # accuracy@100: after 100 epochs
    health: dict[str, float] = field(default_factory=dict)  # of the first and of the last step
    # the steps before which circumstances changed, and to what
    starts: list[tuple[int, Circumstances]] = field(default_factory=list, compare=False)
    seconds: float = field(default=0.0, compare=False)  # that earlier processes trained

    def go_on(self, now: Circumstances) -> bool:
        """Note the circumstances of the next steps; return whether they are unchanged."""
        repeats = now.get("deterministic", True)
        same = not self.starts or (self.starts[-1][1] == now and repeats)
        if not self.starts or not same:
            self.starts.append((self.step, now))
        return same

    @property
    def details(self) -> dict[str, Any]:
        """Return the details that go into the record."""
        details = {"loss_by_epoch": self.loss_by_epoch, **self.stretches}
        details |= {"health": self.health} if self.health else {}
        if not self.dev_curve:
            return details
        step, score = self.best
        return {**details, "dev_curve": self.dev_curve, "best_step": step, "validation": score}

    @property
    def stretches(self) -> dict[str, Any]:
        """Return the circumstances of a training that changed on the way, or nothing."""
        if len(self.starts) < 2:
            return {}
        ends = [step for step, _ in self.starts[1:]] + [self.step]
        stretches = [
            {"from": start, "to": end, **made_with}
            for (start, made_with), end in zip(self.starts, ends, strict=True)
        ]
        return {"stretches": stretches, "equal_to_uninterrupted": "not promised"}

    @property
    def best(self) -> tuple[int, float]:
        """Return the first of the best steps, and its score."""
        return max(self.dev_curve, key=lambda entry: entry[1])
