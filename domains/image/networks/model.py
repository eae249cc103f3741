"""An encoder with its heads, in the recipe's precision."""

from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains.batch_norm import BatchNorm1d
from contrastbench.domains.image.networks.inception import Inception
from contrastbench.domains.image.networks.pretrained import load_weights
from contrastbench.domains.image.networks.resnet import ConvNet, ResNet
from contrastbench.domains.image.recipe import CONVNET, INCEPTION, STEM, ImageRecipe
from contrastbench.domains.model import ContrastiveModel, layer


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
