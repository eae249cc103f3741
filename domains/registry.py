"""Domains by name, ours and those that packages announce; does not import torch."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from contrastbench.domains import download, own
from contrastbench.domains.declaration import Dataset, Datasets, Declaration
from contrastbench.domains.recipe import Recipe
from contrastbench.errors import UserError, unknown, users_code

if TYPE_CHECKING:
    from contrastbench.domains.base import Domain

ENTRY_POINTS = "contrastbench.domains"  # each names a Declaration
DOMAINS: Mapping[str, EntryPoint] = {  # ours, as a package would announce them
    name: EntryPoint(name, f"contrastbench.domains.{name}:DECLARATION", ENTRY_POINTS)
    for name in ("graph", "image", "sentence", "tabular")  # their folders
}


def domains() -> dict[str, EntryPoint]:
    """All domains by name, ours first; none of the packages' code is run.

    Raises:
        UserError: two domains have one name.
    """
    by_name = dict(DOMAINS)
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in by_name:
            other = by_name[entry.name].value
            raise UserError(
                f"two domains are named {entry.name}: {other} and {entry.value}: uninstall one"
            )
        by_name[entry.name] = entry
    return by_name


def check_domain_name(name: str) -> None:
    if name not in DOMAINS and name not in (known := domains()):
        raise unknown("domain", name, known)


def declaration(name: str) -> Declaration:
    check_domain_name(name)
    return entry_declaration(DOMAINS.get(name) or domains()[name])


@cache
def entry_declaration(entry: EntryPoint) -> Declaration:
    with users_code(f"load domain {entry.name} from {entry.value}"):
        about = entry.load()
    if fault := fault_of(about):
        raise UserError(f"domain {entry.name}: {entry.value} {fault}")
    assert isinstance(about, Declaration)
    return about


def fault_of(announced: object) -> str:
    """Say what is wrong with a package's declaration; empty if nothing is."""
    if not isinstance(announced, Declaration):
        return "is no Declaration: see contrastbench.domains.declaration"
    if announced.default not in announced.datasets:
        return f"has the default {announced.default!r}, which is none of its datasets"
    if not re.fullmatch(r"[\w.]+:\w+", announced.adapter):
        return f"has the adapter {announced.adapter!r}: write module:Class"
    if not (isinstance(announced.recipe, type) and issubclass(announced.recipe, Recipe)):
        return f"has the recipe {announced.recipe!r}: give a class derived from domains.recipe"
    return ""


def check_dataset(domain: str, dataset: str) -> None:
    """Raise for a kind of data that the domain does not read, or a file that lacks its kind.

    Other names pass: a data root may hold them.
    """
    about = declaration(domain)
    if dataset in about.datasets or own.parse_source(dataset, about.sources):
        return
    if isfile(dataset):  # noqa: PTH113 - no error where a name is too long
        raise own.unknown_dataset(domain, dataset, about.datasets, about.sources)


def check_listed_dataset(domain: str, dataset: str) -> None:
    """Raise unless it is declared, a file such as csv:mine.csv, or of a package's domain."""
    check_dataset(domain, dataset)
    known = declaration(domain).datasets
    if dataset not in known and ":" not in dataset and domain in DOMAINS:
        raise unknown(f"{domain} dataset", dataset, known)


def fetch(domain: str, name: str, folder: Path | None) -> str:
    """Bring a dataset or a corpus into a data root, or into the cache; where it is."""
    about = declaration(domain)
    known = {**about.corpora, **about.datasets}
    if name in known:
        return fetch_declared(known[name], folder)
    own.parse_source(name, about.sources)
    return "your own, take it along"


def fetch_declared(dataset: Dataset, folder: Path | None) -> str:
    if dataset.within:
        return dataset.within
    path = download.local_file(dataset, folder) if folder else None
    if path is not None and folder in path.parents:
        return str(path)
    if dataset.files:
        paths = [Path(fetch_declared(file, folder)) for file in dataset.files]
        return ", ".join(dict.fromkeys(str(path.parent) for path in paths))
    return str(download.fetch_file(dataset, folder))


def declarations() -> dict[str, Declaration | UserError]:
    loaded: dict[str, Declaration | UserError] = {}
    for name in domains():
        try:
            loaded[name] = declaration(name)
        except UserError as error:  # of a broken package, beside which others are still listed
            loaded[name] = error
    return loaded


def domain_class(name: str) -> "type[Domain[Any, Any, Any]]":
    about = declaration(name)
    with users_code(f"import {about.adapter} of domain {name}"):
        try:
            adapter: type[Domain[Any, Any, Any]] = resolve_name(about.adapter)
        except ModuleNotFoundError as error:
            if about.adapter.replace(":", ".").startswith(f"{error.name}."):
                raise  # its own module is misspelt: nothing to install
            raise missing_library(name, error.name) from None
    return adapter


def check_needs(name: str) -> None:
    """Raise unless the libraries that a domain always needs are installed; none is imported."""
    about = declaration(name)
    for module in about.needs:
        if find_spec(module) is None:
            raise missing_library(name, module)


def missing_library(name: str, module: str | None) -> UserError:
    extra = declaration(name).extra
    fix = f'pip install "{extra}"' if extra else f"pip install {module}"
    return UserError(f"domain {name} needs {module}, which is not installed: {fix}")


def make_recipe(domain: str, values: dict[str, Any]) -> Recipe:
    return declaration(domain).recipe.of(domain, values)


def known_data() -> Datasets:
    return {
        name: dataset
        for about in loaded_declarations().values()
        for known in (about.datasets, about.corpora)
        for name, dataset in known.items()
    }


def loaded_declarations() -> dict[str, Declaration]:
    """Domains that can be loaded; `bench list domains` says what is wrong with the others."""
    return {k: about for k, about in declarations().items() if isinstance(about, Declaration)}
