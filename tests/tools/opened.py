"""A domain that is opened on the CPU, as tests open it."""

from pathlib import Path
from typing import Any

import torch

from contrastbench.domains.recipe import laid_over
from contrastbench.domains.registry import declaration, domain_class, make_recipe

CPU = torch.device("cpu")


def opened(
    domain: str,
    dataset: str = "",
    data_root: Path | None = None,
    seed: int = 0,
    device: torch.device = CPU,
    **recipe: Any,
) -> Any:
    """The domain on a data set, or its default one, under a recipe."""
    named = dataset or declaration(domain).default
    return domain_class(domain)(named, make_recipe(domain, recipe), seed, data_root, device)


def tiny(domain: str, dataset: str = "", **about: Any) -> Any:
    """The domain at its smallest; graphs are those whose few classes fill few folds."""
    named = dataset or ("motifs" if domain == "graph" else "")
    return opened(domain, named, **laid_over(declaration(domain).tiny, about))
