"""BN-Inception, the network of much of metric learning."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD
from contrastbench.domains.model import BatchNorm2d


class Widths(NamedTuple):
    """Channels of a block's branches; one without `single` and `pooled` halves the sides."""

    single: int
    reduced: int
    three: int
    reduced_twice: int
    twice: int
    pooled: int


INCEPTION_BLOCKS = (
    Widths(64, 64, 64, 64, 96, 32),
    Widths(64, 64, 96, 64, 96, 64),
    Widths(0, 128, 160, 64, 96, 0),
    Widths(224, 64, 96, 96, 128, 128),
    Widths(192, 96, 128, 96, 128, 128),
    Widths(160, 128, 160, 128, 160, 128),
    Widths(96, 128, 192, 160, 192, 128),
    Widths(0, 128, 192, 192, 256, 0),
    Widths(352, 192, 320, 160, 224, 128),
    Widths(352, 192, 320, 192, 224, 128),
)


class Inception(nn.Sequential):
    """BN-Inception without its classifier, (n, 3, size, size) to (n, features).

    Ioffe and Szegedy (2015), Figure 5, as Caffe's release and with it everybody's weights have it:
    convolutions with a bias, 32 channels more behind the third and fourth block of 14x14. Layers
    stand in the order of the package pretrainedmodels.
    """

    def __init__(self, width: float = 1.0) -> None:
        channels, last = scaled_width(64, width), scaled_width(192, width)
        first: list[nn.Module] = [
            CaffePixels(),
            *convolution(3, channels, 7, 2),
            halving(),
            *convolution(channels, channels, 1),
            *convolution(channels, last, 3),
            halving(),
        ]
        blocks: list[InceptionBlock] = []
        for published in INCEPTION_BLOCKS:
            widths = Widths(*(scaled_width(count, width) for count in published))
            pool = nn.MaxPool2d if published is INCEPTION_BLOCKS[-1] else nn.AvgPool2d
            blocks.append(InceptionBlock(last, widths, pool(3, 1, 1)))
            last = blocks[-1].outputs
        super().__init__(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.features = last
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def scaled_width(count: int, width: float) -> int:
    return max(1, round(count * width)) if count else 0


class CaffePixels(nn.Module):
    """Images normalised as ImageNet's to what Caffe's networks see.

    That is blue, green and red from 0 to 255, less a mean.
    """

    factor: Tensor
    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        mean, std = torch.tensor(IMAGENET_MEAN), torch.tensor(IMAGENET_STD)
        caffe = torch.tensor([104.0, 117.0, 128.0])
        self.register_buffer("factor", 255 * std.flip(0).view(3, 1, 1), persistent=False)
        self.register_buffer("shift", (255 * mean.flip(0) - caffe).view(3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) * self.factor + self.shift


class InceptionBlock(nn.Module):
    """Branches over the same input, side by side in the output's channels."""

    def __init__(self, inputs: int, widths: Widths, around: nn.Module) -> None:
        super().__init__()
        single, reduced, three, reduced_twice, twice, pooled = widths
        stride = 1 if pooled else 2
        branches = [
            [*convolution(inputs, reduced, 1), *convolution(reduced, three, 3, stride)],
            [
                *convolution(inputs, reduced_twice, 1),
                *convolution(reduced_twice, twice, 3),
                *convolution(twice, twice, 3, stride),
            ],
        ]
        if pooled:
            branches.insert(0, convolution(inputs, single, 1))
            branches.append([around, *convolution(inputs, pooled, 1)])
        else:
            branches.append([halving()])
        self.branches = nn.ModuleList(nn.Sequential(*branch) for branch in branches)
        self.outputs = single + three + twice + (pooled or inputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs, h, w) to (n, outputs, h, w), or half of h and w."""
        return torch.cat([branch(x) for branch in self.branches], 1)


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    convolved = nn.Conv2d(inputs, outputs, size, stride, size // 2)
    return [convolved, BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def halving() -> nn.MaxPool2d:
    """The largest of 3x3, at every other place."""
    return nn.MaxPool2d(3, 2, ceil_mode=True)
