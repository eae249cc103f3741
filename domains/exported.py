"""Write and read trained encoders as folders of safetensors and JSON.

Importing it imports no torch: what a folder says of itself is known before that.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from contrastbench.domains.reading import contents, reading, refuse
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import check_needs, declaration, loaded_declarations
from contrastbench.errors import UserError, users_code

if TYPE_CHECKING:
    import torch
    from torch import Tensor

EXPORTED_WEIGHTS, CONFIG = "model.safetensors", "config.json"
EXPORT_FIX = "export it again"


class Listed(NamedTuple):
    """The samples of a data set in its order."""

    data: Any  # as an encoder of the domain embeds them
    names: list[str] | None = None  # such as those of files


class Encoder(Protocol):
    """A trained encoder that embeds any samples of its kind."""

    @property
    def network(self) -> "torch.nn.Module":
        """Return the network, whose `features` are the embeddings where it has such a method."""

    def embed(self, data: Any) -> "Tensor":
        """(n, d) float32 on the CPU: an embedding of each sample."""

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        """Return the samples of a data set, which need no classes."""


def write_export(
    folder: Path, domain: str, recipe: Recipe, weights: "Mapping[str, Tensor]", **more: Any
) -> None:
    config = {"domain": domain, "recipe": recipe.model_dump(mode="json"), **more}
    write_json(folder / CONFIG, config)
    write_tensors(folder / EXPORTED_WEIGHTS, weights)


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_tensors(
    path: Path, tensors: "Mapping[str, Tensor]", about: dict[str, str] | None = None
) -> None:
    """Write tensors with the modes of other files; safetensors' own are for their owner alone."""
    from safetensors.torch import save

    path.write_bytes(save({key: x.cpu().contiguous() for key, x in tensors.items()}, about))


def read_export(folder: Path, domain: str) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    from safetensors.torch import load_file

    config = config_of(folder)
    with reading(folder, EXPORT_FIX):
        other = domain_in(config)
        fault = f" is an encoder of domain {other}, not {domain}: give --domain {other}"
        refuse(folder, (other != domain, fault))
        return load_file(folder / EXPORTED_WEIGHTS), config


def config_of(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    if not (folder / name).is_file():
        raise no_export(folder)
    with reading(folder, EXPORT_FIX):
        return dict(json.loads(contents(folder / name)))


def no_export(name: object, others: str = "") -> UserError:
    fix = f"give a folder that bench run --export wrote{others}"
    return UserError(f"{name} holds no exported encoder: {fix}")


def domain_of(name: str) -> str:
    """Return the domain of an exported encoder, or the one that knows encoders by name."""
    if (Path(name) / CONFIG).is_file():
        with reading(name, EXPORT_FIX):
            return domain_in(config_of(Path(name)))
    if ":" not in name:
        raise no_export(name, ", or torchvision:resnet50")
    return next(domain for domain, about in loaded_declarations().items() if about.names)


def domain_in(config: Mapping[str, Any]) -> str:
    marks = {about.mark: domain for domain, about in loaded_declarations().items() if about.mark}
    found = next((marks[key] for key in config if key in marks), None)
    return found or str(config["domain"])


def seed_of(name: str) -> int:
    """Return the seed by which a training drew its parts; 0 where the export has none."""
    config = config_of(Path(name)) if (Path(name) / CONFIG).is_file() else {}
    with reading(name, EXPORT_FIX):
        seed = int(config.get("seed", 0))
        if not 0 <= seed < 2**32:  # no generator takes another
            raise ValueError(f"seed {seed}")
        return seed


def open_encoder(name: str, domain: str, data_root: Path | None, device: "torch.device") -> Encoder:
    opener = declaration(domain).opener
    if not opener:
        raise UserError(f"domain {domain} has no encoders that embed: give one of another domain")
    check_needs(domain)
    with users_code(f"import {opener} of domain {domain}"):
        opened = resolve_name(opener)
    return opened(name, data_root, device)
