"""A loss with its parameters: the noun that tables, sweeps, runs and records share.

By algebra it is reduced to an equal or simpler one, without torch.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contrastbench.errors import UserError, unknown
from contrastbench.losses import expression, ranges, registry
from contrastbench.losses.expression import assign, flat_params, weighted
from contrastbench.losses.source import Sources, code_of, portable, releases

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss
from collections.abc import Container

from contrastbench.losses.limits import Limit
from contrastbench.losses.pairing import Pairing
from contrastbench.losses.registry import describe, is_registered

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
    def terms(self) -> dict[str, registry.Term]:
        """The terms of a sum by prefix, or the only one; none of them is made."""
        return {} if self.name == NONE else registry.terms_of(self.name, self.sources)

    @cached_property
    def given(self) -> dict[str, dict[str, Any]]:
        known = {prefix: term.describe().arguments for prefix, term in self.terms.items()}
        return assign(self.name, self.params, known)

    @cached_property
    def complete(self) -> "LossSpec":
        """The loss as its records name it: by its own name, with its parameters after defaults.

        No loss is made. Registered losses need no torch for that, and their values are not checked.

        Raises:
            UserError: no such loss or parameter.

        >>> LossSpec("infonce+2 * decoupled", {"temperature": 0.2}).complete.label
        'infonce + 2*decoupled(infonce.temperature=0.2, decoupled.temperature=0.2)'
        """
        if self.name == NONE:
            self.check()
            return self
        for key, value in self.params.items():
            if isinstance(value, float) and not math.isfinite(value):
                self.check()  # which names the range, if there is one
                raise UserError(f"{key} must be a finite number, got {value}")
        if self.name in registry.OURS:  # and no sum, as thousands in a search
            known = registry.describe_source(self.name).params
            if self.params.keys() <= known.keys():
                return LossSpec(self.name, known | self.params)
        terms = self.terms
        full = {prefix: term.full(self.given[prefix]) for prefix, term in terms.items()}
        if not registry.is_registered(self.name):  # numbers as the loss keeps them
            about = {prefix: term.describe().ranges for prefix, term in terms.items()}
            full = {prefix: ranges.check_ranges(about[prefix], full[prefix]) for prefix in terms}
        names = (weighted(key or term.title.name, term.weight) for key, term in terms.items())
        return LossSpec(" + ".join(names), flat_params(full))

    @cached_property
    def code(self) -> str:
        """Sha256 of the files of a user's own loss, which may be edited; "" for others."""
        if self.name == NONE or registry.is_registered(self.name):
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

        Registered losses need no torch for that.

        Raises:
            UserError: no such loss or parameter, or a value out of its range, which is named.

        >>> LossSpec("infonce", {"temperature": 0}).check()
        Traceback (most recent call last):
        contrastbench.errors.UserError: temperature must be a finite number > 0, got 0
        """
        if self.name == NONE and self.params:
            given = next(iter(self.params))
            raise UserError(f"none is the untrained encoder and has no parameters, got {given}")
        for prefix, term in self.terms.items():
            ranges.in_range("weight", term.weight)
            ranges.check_ranges(term.describe().ranges, term.full(self.given[prefix]))

    def make(self) -> "Loss | None":
        """The loss; None for "none".

        Raises:
            UserError: as in `check`, or it cannot be made.
        """
        for alias in registry.ALIASES.keys() & {*expression.names(self.name)}:
            registry.give_note(alias)
        made = [(term.weight, term.make(self.given[key])) for key, term in self.terms.items()]
        if self.name == NONE or "" in self.terms:
            return made[0][1] if made else None
        from contrastbench.losses.base import Sum

        return Sum(*made)


def get_loss(name: str, **params: Any) -> "Loss":
    """The loss of that name with those parameters.

    Args:
        name: a key of `OURS`, the name of an entry point of the group `contrastbench.losses`,
            `file.py:Class`, `package.module:Name` of an installed package, or a weighted sum of
            these such as `infonce + 0.5*dar`.
        params: the parameters of the loss by name; see `bench list losses`. In a sum a plain name
            goes to every term that has such a parameter, `dar.form` to the one term; of two terms
            from one file, `mine.A.margin` to the one of class A.

    Raises:
        ValueError: unknown name, unknown parameter or a value out of range; the message names the
            fix.

    >>> get_loss("infonce", temperature=0.2)
    InfoNCE(temperature=0.2)
    >>> get_loss("infonce + 0.5*dar", temperature=0.2, **{"dar.form": "star"}).name
    'infonce + 0.5*dar'
    """
    loss = LossSpec(name, params).make()
    if loss is None:
        raise unknown("loss", name, registry.list_losses())
    return loss


def reduced(loss: LossSpec, pairing: Pairing | None, free: Container[str] = ()) -> LossSpec:
    """Return the simplest loss that trains exactly as this setting does.

    Exact limits are followed as far as they lead. Both losses have the same gradient.

    Args:
        loss: a loss with its parameters.
        pairing: facts about the contrasts; None: not known, so only what holds for all counts.
        free: names of parameters that a search gives any value, in both losses.

    >>> from contrastbench.losses.pairing import BOTH_VIEWS
    >>> hcl = LossSpec("hcl", {"beta": 0, "tau_plus": 0})
    >>> reduced(hcl, BOTH_VIEWS).label, reduced(hcl, BOTH_VIEWS, ["temperature"]).label
    ('infonce(temperature=0.5)', 'infonce')
    """
    seen: list[LossSpec] = []
    spec = full_spec(loss, free)
    while spec not in seen:
        seen.append(spec)
        limit = next((each for each in usable(spec, pairing) if each.is_at(spec.params)), None)
        spec = full_spec(target(limit, spec), free) if limit else spec
    return spec


def usable(loss: LossSpec, pairing: Pairing | None) -> list[Limit]:
    """Return the limits of a loss that train alike under a pairing.

    Each is a registered loss: to plan the cells of a loss runs no code that it names.
    """
    limits = describe(loss.name).limits if loss.name != NONE else ()
    known = [limit for limit in limits if is_registered(limit.to)]
    return [limit for limit in known if limit.same_training and limit.holds(pairing)]


def target(limit: Limit, loss: LossSpec) -> LossSpec:
    return LossSpec(limit.to, limit.target(loss.params, describe(limit.to).params))


def full_spec(loss: LossSpec, free: Container[str] = ()) -> LossSpec:
    """Return the loss, by the name that it is looked up with, and its parameters but free ones."""
    if loss.name == NONE:
        return loss
    complete = loss.complete
    params = {name: value for name, value in complete.params.items() if name not in free}
    return LossSpec(loss.name if loss.code else complete.name, params)
