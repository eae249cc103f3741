"""ResNets for small and for ordinary images, of any width, and four plain convolutions."""

from collections import OrderedDict

from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains.model import BatchNorm2d

BLOCKS: dict[str, tuple[type[BasicBlock | Bottleneck], tuple[int, ...]]] = {
    "resnet18": (BasicBlock, (2, 2, 2, 2)),
    "resnet34": (BasicBlock, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
}
CHANNEL_BLOCK = 16  # channels of a block of oneDNN's, with AVX-512; 8 with AVX2


class ResNet(nn.Sequential):
    """torchvision's ResNet without its classifier, (n, 3, size, size) to (n, features).

    Its weights have torchvision's names. The width is times the published number of channels.

    Args:
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
        super().__init__(stem(base, small))
        channels = base
        for stage, count in enumerate(counts):
            blocks = nn.Sequential()
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(residual(block, channels, base * 2**stage, stride))
                channels = base * 2**stage * block.expansion
            self.add_module(f"layer{stage + 1}", blocks)
        self.add_module("avgpool", nn.AdaptiveAvgPool2d(1))
        self.add_module("flatten", nn.Flatten())
        self.features = channels
        drawn = self[0] if stem_init == "pytorch" else None
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module is not drawn:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def stem(channels: int, small: bool) -> OrderedDict[str, nn.Module]:
    kernel, stride = (3, 1) if small else (7, 2)
    first = nn.Conv2d(3, channels, kernel, stride, kernel // 2, bias=False)
    layers = OrderedDict(conv1=first, bn1=BatchNorm2d(channels), relu=nn.ReLU(inplace=True))
    return layers if small else layers | OrderedDict(maxpool=nn.MaxPool2d(3, 2, 1))


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
        self.every = stride if channels < CHANNEL_BLOCK else 1
        super().__init__(channels, outputs, 1, stride // self.every, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to (n, outputs, h / stride, w / stride), rounded up."""
        return super().forward(x[..., :: self.every, :: self.every] if self.every > 1 else x)


class ConvNet(nn.Sequential):
    """Four times a 3x3 convolution that halves the sides, batch norm and ReLU; then the mean.

    For trainings that take seconds on a CPU. (n, 3, size, size) to (n, features), with the channels
    of a ResNet's stages.
    """

    def __init__(self, width: float = 1.0) -> None:
        layers: list[nn.Module] = []
        channels = 3
        for stage in range(4):
            outputs = max(1, round(64 * 2**stage * width))
            layers.append(nn.Conv2d(channels, outputs, 3, 2, 1, bias=False))
            layers += [BatchNorm2d(outputs), nn.ReLU(inplace=True)]
            channels = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.features = channels
