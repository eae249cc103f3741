"""Networks of timm, with published or with new weights, ready to be scored.

Weights are `model.safetensors` of the model's repository on the Hugging Face hub; timm's other
files are pickles, which are never loaded.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from contrastbench.domains.image.preprocessing import Preprocessing
from contrastbench.domains.model import Raw
from contrastbench.domains.reading import cause, reading
from contrastbench.errors import UserError, unknown

PREFIX, RANDOM_PREFIX = "timm:", "random:timm:"
WEIGHTS_FILE = "model.safetensors"


class Backbone(Raw):
    """A network without its classifier."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.encoder = network


def is_timm(name: str) -> bool:
    """Return whether an encoder's name is one of timm.

    >>> is_timm("timm:resnet18"), is_timm("random:timm:resnet18"), is_timm("torchvision:resnet18")
    (True, True, False)
    """
    return name.startswith((PREFIX, RANDOM_PREFIX))


def open_timm(name: str, data_root: Path | None) -> tuple[Backbone, Preprocessing]:
    """Return a network of timm with the preprocessing of its pictures.

    Args:
        name: `timm:NAME` with the weights that timm names, `random:timm:NAME` with new ones.
        data_root: a folder that may hold the weights, as timm/NAME.TAG/model.safetensors.

    Raises:
        UserError: timm is not installed, has no such model, or its weights cannot be had.
    """
    try:
        timm: Any = import_module("timm")
        import_module("timm.data")
    except ModuleNotFoundError:
        raise UserError("timm is not installed: pip install timm") from None
    own = name.removeprefix(RANDOM_PREFIX).removeprefix(PREFIX)
    model, _, tag = own.partition(".")
    if not timm.is_model(model):
        raise unknown("model of timm", model, timm.list_models())
    if tag and not timm.is_model_pretrained(own):
        raise unknown("model of timm", own, timm.list_pretrained(f"{model}.*"))
    if name.startswith(RANDOM_PREFIX):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = timm.create_model(own, num_classes=0)
    else:
        path = weights_file(own, timm.get_pretrained_cfg(own), data_root)
        overlay = {"file": str(path), "custom_load": False}  # what is read, and nothing else
        with reading(path, "delete it and get it again"):
            network = timm.create_model(
                own, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=0
            )
    about = timm.data.resolve_model_data_config(network)
    size = about["input_size"][-1]
    return Backbone(network), Preprocessing(tuple(about["mean"]), tuple(about["std"]), size)


def weights_file(name: str, about: Any, data_root: Path | None) -> Path:
    """Return the file of a model's weights: of the data root, the hub's cache or the hub.

    Raises:
        UserError: there is none, or it cannot be had.
    """
    from huggingface_hub import hf_hub_download

    if not (about and about.hf_hub_id):
        raise UserError(f"timm has no weights for {name}: give {RANDOM_PREFIX}{name} for new ones")
    repository = about.hf_hub_id
    if repository.endswith("/"):
        repository += f"{about.architecture}.{about.tag}" if about.tag else about.architecture
    if data_root and (here := data_root / repository / WEIGHTS_FILE).is_file():
        return here
    for in_cache in (True, False):
        try:
            return Path(hf_hub_download(repository, WEIGHTS_FILE, local_files_only=in_cache))
        except Exception as error:  # a network library's, whichever the hub's version uses
            reason = cause(error).split(". ")[0]
    raise UserError(
        f"https://huggingface.co/{repository} cannot be read ({reason}): "
        f"put its {WEIGHTS_FILE} into {repository} of a folder, and name that with --data-root"
    )
