"""Networks for small and for ordinary images, of any width, and what trains them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains.batch_norm import BatchNorm1d, BatchNorm2d
from contrastbench.domains.image import INCEPTION, STEM, ImageRecipe
from contrastbench.domains.image.inception import Inception
from contrastbench.domains.image.pretrained import load_weights
from contrastbench.domains.model import ContrastiveModel, head
from contrastbench.losses.distributed import own_sizes, world

BLOCKS: dict[str, tuple[type[BasicBlock | Bottleneck], tuple[int, ...]]] = {
    "resnet18": (BasicBlock, (2, 2, 2, 2)),
    "resnet34": (BasicBlock, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
}
FEW = 16  # channels of a block of oneDNN's, with AVX-512; 8 with AVX2


class ResNet(nn.Sequential):
    """torchvision's ResNet without its classifier, (n, 3, size, size) to (n, features).

    Args:
        name: which one.
        width: times the published number of channels.
        small: a 3x3 stem that keeps the image's size (SimCLR's for CIFAR) in place of 7x7, stride 2
            and max-pooling.
        stem_init: whether the stem is drawn as all convolutions are in torchvision's ResNet
            ("kaiming", by the outputs) or as nn.Conv2d has it ("pytorch"), as where a released code
            exchanges the stem of a finished network.
    """

    def __init__(
        self, name: str, width: float = 1.0, small: bool = False, stem_init: str = "kaiming"
    ) -> None:
        block, counts = BLOCKS[name]
        base = max(1, round(64 * width))
        layers, channels = stem(base, small), base
        for stage, count in enumerate(counts):
            for number in range(count):
                layers.append(
                    residual(
                        block, channels, base * 2**stage, 2 if stage > 0 and number == 0 else 1
                    )
                )
                channels = base * 2**stage * block.expansion
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.features = channels
        drawn = layers[0] if stem_init == "pytorch" else None
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module is not drawn:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def stem(channels: int, small: bool) -> list[nn.Module]:
    """Make the first layers of a ResNet."""
    first = (
        nn.Conv2d(3, channels, 3, 1, 1, bias=False)
        if small
        else nn.Conv2d(3, channels, 7, 2, 3, bias=False)
    )
    pool = [] if small else [nn.MaxPool2d(3, 2, 1)]
    return [first, BatchNorm2d(channels), nn.ReLU(inplace=True), *pool]


def residual(
    block: type[BasicBlock | Bottleneck], channels: int, planes: int, stride: int
) -> nn.Module:
    """A residual block; its shortcut is a 1x1 convolution where the shape changes."""
    outputs = planes * block.expansion
    if stride == 1 and channels == outputs:
        return block(channels, planes, norm_layer=BatchNorm2d)
    shortcut = nn.Sequential(Shortcut(channels, outputs, stride), BatchNorm2d(outputs))
    return block(channels, planes, stride, shortcut, norm_layer=BatchNorm2d)


class Shortcut(nn.Conv2d):
    """nn.Conv2d(channels, outputs, 1, stride, bias=False), safe for few channels.

    For fewer than 16 of them oneDNN writes beyond its memory in the backward pass of a 1x1
    convolution with a stride (its issue 6035), so that the process dies or hangs. There the same
    pixels are taken first, which alters no number.
    """

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        self.every = stride if channels < FEW else 1
        super().__init__(channels, outputs, 1, stride // self.every, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to (n, outputs, h / stride, w / stride), rounded up."""
        return super().forward(x[..., :: self.every, :: self.every] if self.every > 1 else x)


def start_as_shortcuts(encoder: nn.Module) -> None:
    """Every residual block's last batch norm has weight zero (Goyal et al. 2017, 5.1)."""
    for block in encoder.modules():
        if isinstance(block, BasicBlock | Bottleneck):
            last = block.bn2 if isinstance(block, BasicBlock) else block.bn3
            nn.init.zeros_(last.weight)


def perceptron(inputs: int, widths: tuple[int, ...]) -> nn.Sequential:
    """A head of two layers, or of one if that is all that has a width."""
    *hidden, outputs = widths
    return head(inputs, hidden[0], outputs) if hidden else nn.Sequential(nn.Linear(inputs, outputs))


def without_bias(network: nn.Sequential) -> nn.Sequential:
    """The network with another last layer."""
    last = network[-1]
    assert isinstance(last, nn.Linear), "heads end so"
    network[-1] = nn.Linear(last.in_features, last.out_features, bias=False)
    return network


def network(recipe: ImageRecipe) -> ResNet | Inception:
    """The recipe's, with weights drawn."""
    name = recipe.pretrained or recipe.encoder
    if name == INCEPTION:
        return Inception(recipe.width)
    return ResNet(name, recipe.width, recipe.size <= STEM, recipe.stem_init)


class ImageModel(ContrastiveModel):
    """A network with its heads, in the recipe's precision; channels are last in memory.

    With a `chunk`, images are embedded so many at a time and the activations are recomputed in the
    backward pass, so that memory is that of a chunk while the loss sees the whole batch. Batch norm
    then takes each chunk's statistics.

    Args:
        recipe: names the network, heads, pairing and precision.
        steps: training steps until the target network's momentum is 1.
        data_root: a folder that may hold the weights that it starts from.
    """

    def __init__(self, recipe: ImageRecipe, steps: int, data_root: Path | None = None) -> None:
        encoder = network(recipe)
        if recipe.zero_init_residual:
            start_as_shortcuts(encoder)
        if recipe.pretrained:
            load_weights(encoder, recipe.pretrained, data_root)
        outputs = recipe.projection[-1]
        projector = perceptron(encoder.features, recipe.projection)
        if recipe.projection_norm:
            without_bias(projector).append(BatchNorm1d(outputs, affine=False))
        moco = recipe.pairing == "query_key"
        predictor = perceptron(outputs, recipe.projection) if moco and recipe.predictor else None
        if predictor is not None and not recipe.predictor_bias:
            without_bias(predictor)
        super().__init__(encoder, projector, predictor, recipe.ema if moco else None, steps)
        self.embeds = recipe.embeds
        self.bf16 = recipe.precision == "bf16"
        self.chunk, self.batch_size = recipe.chunk, recipe.batch_size
        self.to(memory_format=torch.channels_last)

    def autocast(self, x: Tensor) -> torch.autocast:
        """Products in bfloat16 if the recipe says so."""
        return torch.autocast(x.device.type, torch.bfloat16, enabled=self.bf16)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) embeddings of images, as anchors."""
        return self.in_chunks(super().forward, x)

    def targets(self, x: Tensor) -> Tensor:
        """(n, d) embeddings of images as keys, without gradient."""
        with torch.no_grad():
            return self.in_chunks(self.target, x)

    def features(self, x: Tensor) -> Tensor:
        """(n, features) what is scored."""
        with self.autocast(x):
            return (self.online if self.embeds else self.encoder)(x).float()

    def in_chunks(self, network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply the network to images, as many at a time as the recipe says."""

        def embed(chunk: Tensor) -> Tensor:
            with self.autocast(chunk):
                return network(chunk)

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            return nullcontext(), statistics_kept(self)

        images = self.batch_size if world() > 1 else len(x)
        if self.chunk is None or images <= self.chunk:
            return embed(x)
        parts = x.split(own_sizes(images, self.chunk))
        if not torch.is_grad_enabled():
            return torch.cat([embed(part) for part in parts])
        again = partial(
            checkpoint, embed, use_reentrant=False, preserve_rng_state=False, context_fn=contexts
        )
        return torch.cat([again(part) for part in parts])


@contextmanager
def statistics_kept(model: nn.Module) -> Iterator[None]:
    """Batch norm's running statistics stay as they are: what is recomputed has been counted."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, before, strict=True):
            norm.momentum = momentum
