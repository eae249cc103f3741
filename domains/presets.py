"""Presets of a recipe in a YAML file, read when somebody asks for one."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from contrastbench.errors import UserError


class Presets(Mapping[str, dict[str, Any]]):
    """The values of each preset by its name.

    Args:
        path: of a YAML file: a mapping of names to mappings.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def values_by_name(self) -> dict[str, dict[str, Any]]:
        """Return the values, which the file is read for once.

        Raises:
            UserError: it is no such mapping.
        """
        from contrastbench.domains import strict_yaml  # takes a tenth of the time of a list

        found = strict_yaml.read_yaml(self.path).value
        if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
            raise UserError(f"{self.path} is no mapping of presets: give each its values by key")
        return found

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)
