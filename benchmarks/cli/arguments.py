"""Parse arguments: values by key, and losses with their parameters."""

import re
from collections.abc import Iterable
from typing import Any

from contrastbench.benchmarks.records.command import parse_value
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec


def parse_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """Read KEY=VALUE pairs; values are numbers in any notation.

    >>> parse_pairs("--recipe", ["lr=1e-3", "features=degree"])
    {'lr': 0.001, 'features': 'degree'}
    """
    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {pair!r}: give KEY=VALUE")
        if key.strip() in values:
            raise UserError(f"{option} {key.strip()} is given twice")
        values[key.strip()] = parse_value(text.strip())
    return values


def parse_losses(texts: Iterable[str] | None) -> list[LossSpec]:
    """Read losses with their parameters.

    >>> [loss.label for loss in parse_losses(["infonce(temperature=0.2)", "adnce"])]
    ['infonce(temperature=0.2)', 'adnce']
    """
    losses = [parse_loss(text) for text in texts or ()]
    for loss in losses:
        _ = loss.complete  # an unknown name is one here
    if any(loss in losses[:i] for i, loss in enumerate(losses)):
        raise UserError(
            "a loss is given twice: give each once, or with other parameters: "
            "infonce(temperature=0.2)"
        )
    return losses


def parse_loss(text: str, option: str = "--loss") -> LossSpec:
    """Read a loss as the command line writes it.

    >>> parse_loss("infonce(temperature=0.2)")
    LossSpec(name='infonce', params={'temperature': 0.2})
    >>> parse_loss("a (1)/mine.py:Mine(margin=0.2)").name
    'a (1)/mine.py:Mine'
    """
    match = re.fullmatch(r"(.+\.py:\w+|[^()]+)(?:\(([^()]*)\))?", text.strip())
    if not match:
        raise UserError(f"{option} {text!r}: give a loss or loss(KEY=VALUE, ...)")
    return LossSpec(match[1].strip(), parse_pairs(option, match[2] and match[2].split(",")))
