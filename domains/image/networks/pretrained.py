"""Weights of networks that were trained on ImageNet: torchvision's, and those of BN-Inception."""

from pathlib import Path
from urllib.parse import urlsplit

import torch
from torch import Tensor, nn
from torchvision.models import get_model_weights

from contrastbench.domains.download import file_sha256
from contrastbench.domains.reading import cause, reading
from contrastbench.errors import UserError

IMAGENET_WEIGHTS = "IMAGENET1K_V1"  # those that papers start from; later ones are of other training
# as the package pretrainedmodels has them, from Caffe's
INCEPTION_URL = "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth"
CLASSIFIER_PREFIXES = ("fc.", "last_linear.")
COUNTERS = "num_batches_tracked"  # which old files lack


def load_weights(encoder: nn.Module, name: str, data_root: Path | None) -> None:
    """Give a network of ours the weights of that name; its layers stand in one order."""
    url = INCEPTION_URL if name == "bn_inception" else get_model_weights(name)[IMAGENET_WEIGHTS].url
    state = pretrained_weights(url, data_root)
    theirs = [state[key] for key in weight_names(state) if not key.startswith(CLASSIFIER_PREFIXES)]
    with reading(urlsplit(url).path, f"get {url} again"):
        own = dict(zip(weight_names(encoder.state_dict()), theirs, strict=True))
        encoder.load_state_dict(encoder.state_dict() | own)


def weight_names(state: dict[str, Tensor]) -> list[str]:
    return [name for name in state if not name.endswith(COUNTERS)]


def pretrained_weights(url: str, data_root: Path | None) -> dict[str, Tensor]:
    file = urlsplit(url).path.rpartition("/")[2]
    begins = file.rpartition("-")[2].partition(".")[0]
    kept = Path(torch.hub.get_dir()) / "checkpoints" / file
    here = data_root is not None and (data_root / file).is_file()
    path = data_root / file if data_root and here else kept
    fix = f"put {file} into a folder and name it with --data-root (or CONTRASTBENCH_DATA)"
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(path), begins)
        if not file_sha256(path).startswith(begins):
            raise ValueError(f"the sha256 of {path} does not begin with {begins}")
        weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its readers raise whatever there is
        raise UserError(f"{url} cannot be read ({cause(error)}): {fix}") from None
    return weights
