"""Presets of a recipe in a YAML file, read when somebody asks for one."""

from functools import cache
from pathlib import Path
from typing import Any


@cache
def presets_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return the values of each preset by its name."""
    from contrastbench.domains import strict_yaml  # takes a tenth of the time of a list

    values: dict[str, dict[str, Any]] = strict_yaml.read_yaml(path).value
    return values


class Presets:
    """A class attribute that is read of a file at its first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __get__(self, recipe: object, kind: type) -> dict[str, dict[str, Any]]:
        return presets_in(self.path)
