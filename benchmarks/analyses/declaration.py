"""Declare analyses: the options they take, their parameters and their help; needs no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.errors import UserError, unknown
from contrastbench.losses.spec import LossSpec


@dataclass(frozen=True)
class Parameter:
    """A parameter of one analysis, which `--with KEY=VALUE` sets.

    Args:
        kind: int, float or str.
        default: its value; a tuple where several values may be given.
        help: its meaning in one line.
        low, high: bounds of a number, both allowed.
        choices: the texts that are allowed.

    >>> print(Parameter(float, (0.0, 1.0), "Shares.", high=1))
    numbers from 0 to 1 between commas
    """

    kind: type[int] | type[float] | type[str]
    default: Any
    help: str
    low: float = 0
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """Return whether several values may be given, between commas."""
        return isinstance(self.default, tuple)

    def check(self, key: str, value: Any) -> Any:
        """Return one value, a number as this parameter's kind.

        Raises:
            UserError: it is of another kind, out of range or no choice.
        """
        if self.choices and value not in self.choices:
            raise unknown(key, str(value), self.choices)
        known = (int,) if self.kind is int else (int, float)
        if self.choices or (type(value) in known and self.low <= value <= self.high):
            return self.kind(value)
        raise UserError(f"--with {key}={value}: give {self}")

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(self.choices) + ", or several between commas" * self.several
        noun = "whole number" if self.kind is int else "number"
        bounds = f"from {self.low:g}" + f" to {self.high:g}" * (self.high < math.inf)
        return f"{noun}s {bounds} between commas" if self.several else f"a {noun} {bounds}"


@dataclass(frozen=True)
class Analysis:
    """One analysis: the module of its name has a function `run`, which takes its `Work`.

    Args:
        summary: the result and the paper's figure, in one line.
        about: further sentences of its help.
        examples: commands.
        options: the shared options that it takes besides --loss, --set, --with and --output.
        parameters: those of --with, by key.
        losses: default of --loss; empty: one must be given.
        one_loss: whether it takes a single loss.
        seeds: default of --seeds.
        one_seed: whether it takes a single seed.
    """

    summary: str
    about: str
    examples: tuple[str, ...]
    options: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    one_loss: bool = False
    seeds: str = "0"
    one_seed: bool = True


@dataclass(frozen=True)
class Work:
    """An analysis as it was asked for.

    Args:
        losses: the losses that are compared.
        seeds: one seed, or several where the analysis averages.
        values: the values of its parameters by key.
        options: folders of records and data, and the device.
        folder: where its files go.
        trained: domain, data set and recipe of its trainings; None: it needs no domain.
        tiny: whether it is a smoke test.
    """

    losses: Sequence[LossSpec]
    seeds: Sequence[int]
    values: Mapping[str, Any]
    options: Options
    folder: Path
    trained: Experiment | None = None
    tiny: bool = False

    @property
    def experiment(self) -> Experiment:
        """Return domain, data set and recipe, of an analysis that takes --domain."""
        assert self.trained is not None, "it takes --domain"
        return self.trained
