"""What words on the command line mean: seeds, and values by key."""

from collections.abc import Iterable
from typing import Any

import yaml

from contrastbench.losses.errors import UserError


def parse_seeds(text: str) -> list[int]:
    """Seeds of a list of numbers and ranges.

    >>> parse_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = []
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"--seeds {text!r}: give distinct numbers from 0 on, such as 0-4 or 0,2,5")
    return seeds


def parse_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """Values by key; numbers in any notation.

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


def parse_value(text: str) -> Any:
    """A number in any notation, else what YAML makes of it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
