"""The registry of domains by name; importing it does not import torch."""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from contrastbench.losses.errors import UserError, unknown

DOMAINS: Mapping[str, tuple[str, str]] = {  # name -> "module:Class", what it is
    "graph": ("contrastbench.domains.graph:GraphDomain", "GraphCL's GIN on the TU collection, SVM 10-fold"),
    "image": ("contrastbench.domains.image:ImageDomain", "ResNets by SimCLR or MoCo v3, linear probe and kNN"),
    "sentence": (
        "contrastbench.domains.sentence:SentenceDomain",
        "SimCSE on any BERT-type encoder, Spearman on STS",
    ),
    "tabular": ("contrastbench.domains.tabular:TabularDomain", "RényiCL's MLP on tables of numbers, linear probe"),
}


ENTRY_POINTS = "contrastbench.domains"  # each names a class like ours that also has summary, recipe, default and tiny


def plugins() -> dict[str, EntryPoint]:
    """Domains that installed packages announce, by name; none of their code is run.

    Raises:
        UserError: two domains have one name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in DOMAINS or entry.name in found:
            other = DOMAINS[entry.name][0] if entry.name in DOMAINS else found[entry.name].value
            raise UserError(f"two domains are named {entry.name}: {other} and {entry.value}: uninstall one")
        found[entry.name] = entry
    return found


def is_domain(name: str) -> bool:
    """Whether a domain has that name."""
    return name in DOMAINS or name in plugins()


def check_domain(name: str) -> None:
    """Raise unless a domain has that name."""
    if not is_domain(name):
        raise unknown("domain", name, [*DOMAINS, *plugins()])


def domain_class(name: str) -> Any:
    """The adapter of a domain.

    Raises:
        UserError: unknown name, or a library that the domain needs is not installed.
    """
    check_domain(name)
    if name not in DOMAINS:
        return load(plugins()[name])
    module, attribute = DOMAINS[name][0].split(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        fix = f'pip install "contrastbench[{name}]"'
        raise UserError(f"domain {name} needs {error.name}, which is not installed: {fix}") from None


def load(entry: EntryPoint) -> Any:
    """The class that a package announces."""
    try:
        kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise UserError(f"domain {entry.name}: cannot import {entry.value} ({error})") from None
    for part in ("summary", "recipe", "default", "tiny"):
        if not hasattr(kind, part):
            raise UserError(f"domain {entry.name}: {entry.value} has no attribute {part}; see domains/base.py")
    return kind
