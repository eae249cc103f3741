"""The registry of domains by name, ours and those that packages announce; importing it does not import torch."""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from contrastbench.domains.declaration import Datasets, Declaration
from contrastbench.domains.recipe import Recipe
from contrastbench.losses.errors import UserError, unknown

if TYPE_CHECKING:
    from contrastbench.domains.base import Domain

ENTRY_POINTS = "contrastbench.domains"  # each names a Declaration
DOMAINS: Mapping[str, EntryPoint] = {  # ours, as a package would announce them
    name: EntryPoint(name, f"contrastbench.domains.{name}:DECLARATION", ENTRY_POINTS)
    for name in ("graph", "image", "sentence", "tabular")
}


def domains() -> dict[str, EntryPoint]:
    """All domains by name, ours first; none of the packages' code is run.

    Raises:
        UserError: two domains have one name.
    """
    found = dict(DOMAINS)
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in found:
            other = found[entry.name].value
            raise UserError(
                f"two domains are named {entry.name}: {other} and {entry.value}: uninstall one"
            )
        found[entry.name] = entry
    return found


def check_domain(name: str) -> None:
    """Raise unless a domain has that name."""
    if name not in DOMAINS and name not in (known := domains()):
        raise unknown("domain", name, known)


def declaration(name: str) -> Declaration:
    """What the domain of that name says of itself.

    Raises:
        UserError: unknown name, or what a package announces is no declaration.
    """
    check_domain(name)
    entry = DOMAINS.get(name) or domains()[name]
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"domain {name}: cannot import {entry.value} ({error})") from None
    if not isinstance(found, Declaration):
        raise UserError(
            f"domain {name}: {entry.value} is no Declaration; see contrastbench.domains.declaration"
        )
    return found


def domain_class(name: str) -> "type[Domain[Any, Any, Any]]":
    """The adapter of a domain.

    Raises:
        UserError: unknown name, or a library that the domain needs is not installed.
    """
    about = declaration(name)
    module, _, attribute = about.adapter.partition(":")
    try:
        found: type[Domain[Any, Any, Any]] = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        fix = f'pip install "{about.extra}"' if about.extra else f"pip install {error.name}"
        raise UserError(
            f"domain {name} needs {error.name}, which is not installed: {fix}"
        ) from None
    return found


def make_recipe(domain: str, values: dict[str, Any]) -> Recipe:
    """The domain's recipe with these values in place of the defaults; see `Recipe.of`.

    >>> make_recipe("graph", {"epoch": 3})
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: unknown recipe key of domain graph 'epoch': did you mean 'epochs'?
    """
    return declaration(domain).recipe.of(domain, values)


def datasets() -> dict[str, Datasets]:
    """The datasets of every domain."""
    return {name: declaration(name).datasets for name in domains()}


def known_data() -> Datasets:
    """Every dataset and corpus by name."""
    parts = [
        part
        for name in domains()
        for part in (declaration(name).datasets, declaration(name).corpora)
    ]
    return {name: dataset for part in parts for name, dataset in part.items()}
