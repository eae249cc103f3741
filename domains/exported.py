"""Write and read trained encoders as folders of safetensors and JSON."""

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from contrastbench.domains.reading import contents, reading
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import domain_class, make_recipe
from contrastbench.losses.errors import UserError

WEIGHTS, CONFIG = "model.safetensors", "config.json"
AGAIN = "export it again"


def write(
    folder: Path, domain: str, recipe: Recipe, weights: Mapping[str, Tensor], **more: Any
) -> None:
    """Write an encoder's weights, with its domain, recipe and other values as JSON."""
    config = {"domain": domain, "recipe": recipe.model_dump(mode="json"), **more}
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: x.cpu().contiguous() for key, x in weights.items()}, folder / WEIGHTS)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read(folder: Path, domain: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights, and what stands beside them.

    Raises:
        UserError: there are none, they are of another domain, or the folder is damaged.
    """
    if not (folder / CONFIG).is_file():
        raise UserError(
            f"{folder} holds no exported encoder: give a folder that bench run --export wrote"
        )
    with reading(folder, AGAIN):
        config = json.loads(contents(folder / CONFIG))
        if config["domain"] != domain:
            other = config["domain"]
            raise UserError(
                f"{folder} is an encoder of domain {other}, not {domain}: give --domain {other}"
            )
        return load_file(folder / WEIGHTS), config


def seed_of(name: str) -> int:
    """The seed by which a training drew its parts, as its export says; 0 where nothing says one."""
    path = Path(name) / CONFIG
    if not path.is_file():
        return 0
    with reading(path.parent, AGAIN):
        seed = int(json.loads(contents(path)).get("seed", 0))
        if not 0 <= seed < 2**32:  # no generator takes another
            raise ValueError(f"seed {seed}")
        return seed


def score(
    name: str,
    domain: str,
    changes: Mapping[str, Any],
    dataset: str,
    seed: int,
    data_root: Path | None,
    device: torch.device,
) -> dict[str, float]:
    """The metrics of an encoder on all of a set, as its domain scores those that it trains.

    Args:
        name: the encoder's folder.
        domain: whose models have an `encoder`.
        changes: values over those of the recipe that it was trained with.
        dataset: as `bench run` takes it.
        seed: of what the domain draws to score.
        data_root: a folder that may hold data.
        device: where it is embedded.

    Raises:
        UserError: no such encoder or set, or they do not fit each other.
    """
    weights, config = read(Path(name), domain)
    recipe = make_recipe(domain, {**config["recipe"], **changes, "limit": None})
    opened = domain_class(domain)(dataset, recipe, seed, data_root, device)
    model = opened.model()
    check_features(getattr(opened, "inputs", ()), config.get("inputs"), name, dataset)
    check_fits(model.encoder, weights, name, dataset)
    model.encoder.load_state_dict(weights)
    return opened.evaluate(model).metrics


def check_features(
    found: Sequence[str], expected: Sequence[str] | None, name: str, dataset: str
) -> None:
    """Raise unless a set has the inputs that an encoder was trained on, if these have names."""
    if expected is not None and list(found) != list(expected):
        pairs = zip_longest(expected, found, fillvalue="nothing")
        one, other = next((a, b) for a, b in pairs if a != b)
        raise UserError(
            f"{name} does not fit {dataset} ({other} is where it was trained on {one}): score it "
            "on data with the columns and categories that it was trained on, in their order"
        )


def check_fits(encoder: nn.Module, weights: Mapping[str, Tensor], name: str, dataset: str) -> None:
    """Raise unless the weights have the shapes of an encoder of this set."""
    expected = {key: tuple(x.shape) for key, x in encoder.state_dict().items()}
    found = {key: tuple(x.shape) for key, x in weights.items()}
    for key in {**expected, **found}:
        if expected.get(key) != found.get(key):
            raise UserError(
                f"{name} does not fit {dataset} ({key}: {found.get(key)}, not "
                f"{expected.get(key)}): score it on data with the features that it was trained on"
            )
