"""Four convolutions, for trainings that take seconds on a CPU."""

from torch import nn

from contrastbench.domains.batch_norm import BatchNorm2d


class ConvNet(nn.Sequential):
    """Four times a 3x3 convolution that halves the sides, batch norm and ReLU; then the mean.

    (n, 3, size, size) to (n, features), with the channels of a ResNet's stages.

    Args:
        width: times 64, 128, 256 and 512 channels.
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
