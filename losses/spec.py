"""A loss with its parameters: the noun that tables, sweeps, runs and records share."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contrastbench.errors import UserError
from contrastbench.losses.code import code_of, portable, releases
from contrastbench.losses.registry import (
    Term,
    check_loss_params,
    complete,
    is_registered,
    make_loss,
    parse_terms,
)
from contrastbench.losses.source import Sources

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss

NONE = "none"  # no loss: the untrained encoder


@dataclass(frozen=True)
class LossSpec:
    """A loss as somebody asks for it. Registered losses need no torch until they are made.

    A user's file is read once: each `make` runs the code that `code` is the hash of.

    >>> LossSpec("adnce", {"mu": 0.3}).complete.params["sigma"]
    1.0
    """

    # registered, of an entry point, file.py:Class, package.module:Name, a weighted sum, or "none"
    name: str
    params: dict[str, Any] = field(default_factory=dict)  # those that are given

    @cached_property
    def sources(self) -> Sources:
        """The files of a user's own loss as they were first read."""
        return Sources()

    @property
    def label(self) -> str:
        """The name and the parameters that are given, for people.

        >>> LossSpec("adnce", {"mu": 0.7}).label
        'adnce(mu=0.7)'
        """
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.name}({params})" if params else self.name

    @cached_property
    def terms(self) -> dict[str, Term]:
        """The terms of a sum by prefix, or the only one; none of them is made."""
        return {} if self.name == NONE else parse_terms(self.name, self.sources)

    @cached_property
    def complete(self) -> "LossSpec":
        """The loss as its records name it: by its own name, with its parameters after defaults.

        Raises:
            UserError: no such loss or parameter.
        """
        if self.name == NONE:
            self.check()
            return self
        return LossSpec(*complete(self.name, self.params, self.terms))

    @cached_property
    def code(self) -> str:
        """Sha256 of the files of a user's own loss, which may be edited; "" for others."""
        if self.name == NONE or is_registered(self.name):
            return ""
        targets = [term.target for term in self.terms.values() if not term.registered]
        return code_of(targets, self.packages, self.sources)

    @property
    def packages(self) -> list[str]:
        """The packages of plain modules and functions, whose releases tell their code."""
        return [term.package for term in self.terms.values() if term.package]

    @property
    def files(self) -> dict[str, Any]:
        """Return what a record keeps of a user's own loss, to make it again; {} for ours."""
        if not self.code:
            return {}
        name, files = portable(self.name, self.sources)
        packages = releases(self.packages)
        return {"name": name, "files": files, **({"packages": packages} if packages else {})}

    def check(self) -> None:
        """Raise unless the loss can be had; one of somebody's own is not made.

        Raises:
            UserError: no such loss or parameter, or a value out of its range, which is named.
        """
        if self.name != NONE:
            check_loss_params(self.name, self.params, self.terms)
        elif self.params:
            given = next(iter(self.params))
            raise UserError(f"none is the untrained encoder and has no parameters, got {given}")

    def make(self) -> "Loss | None":
        """The loss; None for "none".

        Raises:
            UserError: as in `check`, or it cannot be made.
        """
        return None if self.name == NONE else make_loss(self.name, self.params, self.sources)
