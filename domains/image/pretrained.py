"""ResNets as torchvision's weights have them, trained on ImageNet."""

from pathlib import Path
from urllib.parse import urlsplit

import torch
from torch import Tensor, nn
from torchvision.models import get_model_weights

from contrastbench.domains.reading import cause, reading
from contrastbench.losses.errors import UserError

VERSION = "IMAGENET1K_V1"  # those that papers start from; later ones are of other training


def load_weights(encoder: nn.Module, name: str, data_root: Path | None) -> None:
    """Give a ResNet of ours torchvision's weights of that name; its layers stand in one order.

    Raises:
        UserError: the file cannot be had, or is something else.
    """
    url = get_model_weights(name)[VERSION].url
    theirs = [tensor for key, tensor in weights(url, data_root).items() if key[:3] != "fc."]
    with reading(urlsplit(url).path, f"get {url} again"):
        encoder.load_state_dict(dict(zip(encoder.state_dict(), theirs, strict=True)))


def weights(url: str, data_root: Path | None) -> dict[str, Tensor]:
    """From the data root, or from torch.hub's cache, which checks the hash of what it downloads."""
    file = urlsplit(url).path.rpartition("/")[2]
    here = data_root is not None and (data_root / file).is_file()
    fix = f"put {file} into a folder and name it with --data-root (or CONTRASTBENCH_DATA)"
    try:
        found: dict[str, Tensor] = torch.hub.load_state_dict_from_url(
            url,
            model_dir=str(data_root) if here else None,
            map_location="cpu",
            check_hash=True,
            weights_only=True,
        )
    except Exception as error:  # its readers raise whatever there is
        raise UserError(f"{url} cannot be read ({cause(error)}): {fix}") from None
    return found
