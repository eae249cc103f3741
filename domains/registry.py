"""The registry of domains by name; importing it does not import torch."""

import importlib
from collections.abc import Mapping
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


def check_domain(name: str) -> None:
    """Raise unless a domain has that name."""
    if name not in DOMAINS:
        raise unknown("domain", name, DOMAINS)


def domain_class(name: str) -> Any:
    """The adapter of a domain.

    Raises:
        UserError: unknown name, or a library that the domain needs is not installed.
    """
    check_domain(name)
    module, attribute = DOMAINS[name][0].split(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        fix = f'pip install "contrastbench[{name}]"'
        raise UserError(f"domain {name} needs {error.name}, which is not installed: {fix}") from None
