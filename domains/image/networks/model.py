"""An encoder with its heads, in the recipe's precision, and weights of ImageNet."""

from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import torch
from torch import Tensor, nn
from torchvision.models import get_model_weights
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains.download import file_sha256
from contrastbench.domains.image.networks.inception import Inception
from contrastbench.domains.image.networks.resnet import ConvNet, ResNet
from contrastbench.domains.image.recipe import CONVNET, INCEPTION, STEM, ImageRecipe
from contrastbench.domains.model import BatchNorm1d, ContrastiveModel, layer
from contrastbench.domains.reading import cause, reading
from contrastbench.errors import UserError

IMAGENET_WEIGHTS = "IMAGENET1K_V1"  # those that papers start from; later ones are of other training
# as the package pretrainedmodels has them, from Caffe's
INCEPTION_URL = "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth"
CLASSIFIER_PREFIXES = ("fc.", "last_linear.")
COUNTERS = "num_batches_tracked"  # which old files lack


def projection_head(inputs: int, widths: tuple[int, ...]) -> nn.Sequential:
    *hidden, outputs = widths
    layers = [part for pair in pairwise([inputs, *hidden]) for part in layer(*pair, True)]
    return nn.Sequential(*layers, nn.Linear([inputs, *hidden][-1], outputs))


def without_bias(network: nn.Sequential) -> nn.Sequential:
    last = network[-1]
    assert isinstance(last, nn.Linear), "heads end so"
    network[-1] = nn.Linear(last.in_features, last.out_features, bias=False)
    return network


def network(recipe: ImageRecipe) -> ResNet | Inception | ConvNet:
    name = recipe.pretrained or recipe.encoder
    if name == INCEPTION:
        return Inception(recipe.width)
    if name == CONVNET:
        return ConvNet(recipe.width)
    return ResNet(name, recipe.width, recipe.size <= STEM, recipe.stem_init)


class ImageModel(ContrastiveModel):
    """A network with its heads, in the recipe's precision; channels are last in memory."""

    def __init__(self, recipe: ImageRecipe, steps: int, data_root: Path | None = None) -> None:
        encoder = network(recipe)
        for block in encoder.modules() if recipe.zero_init_residual else ():
            if isinstance(block, BasicBlock | Bottleneck):  # which starts as its shortcut
                nn.init.zeros_((block.bn2 if isinstance(block, BasicBlock) else block.bn3).weight)
        if recipe.pretrained:
            load_weights(encoder, recipe.pretrained, data_root)
        outputs = recipe.projection[-1]
        projector = projection_head(encoder.features, recipe.projection)
        if recipe.projection_norm:
            without_bias(projector).append(BatchNorm1d(outputs, affine=False))
        moco = recipe.pairing == "query_key"
        hidden = recipe.predictor_width
        widths = (hidden, outputs) if hidden else recipe.projection
        predictor = projection_head(outputs, widths) if moco and recipe.predictor else None
        if predictor is not None and not recipe.predictor_bias:
            without_bias(predictor)
        super().__init__(encoder, projector, predictor, recipe.ema if moco else None, steps)
        self.embeds = recipe.embeds
        self.bf16 = recipe.precision == "bf16"
        self.to(memory_format=torch.channels_last)

    def autocast(self, x: Tensor) -> torch.autocast:
        return torch.autocast(x.device.type, torch.bfloat16, enabled=self.bf16)

    def forward(self, x: Tensor) -> Tensor:
        with self.autocast(x):
            return super().forward(x)

    def targets(self, x: Tensor) -> Tensor:
        with self.autocast(x):
            return super().targets(x)

    def features(self, x: Tensor) -> Tensor:
        with self.autocast(x):
            return (self.online if self.embeds else self.encoder)(x).float()


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
