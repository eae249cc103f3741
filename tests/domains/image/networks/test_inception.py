"""BN-Inception is the published network: golden values of the package pretrainedmodels 0.7.4."""

import pytest
import torch

pytest.importorskip("torchvision")
from contrastbench.domains.image.networks.inception import CaffePixels, Inception

GOLDEN = [
    *(223.791266, 376.204202, 526.906428, 478.040029, 35.676106, 76.510852),
    *(2.483096, 2.573519, 0.0, 264.398965, 546.010042),
]


def fill(network: torch.nn.Module) -> None:
    """Weights by a formula, in the order of the layers."""
    state = network.state_dict()
    kept = [tensor for name, tensor in state.items() if not name.endswith("num_batches_tracked")]
    for k, tensor in enumerate(kept):
        wave = torch.sin(0.37 * torch.arange(tensor.numel(), dtype=torch.float64) + k)
        wave = wave.reshape(tensor.shape)
        tensor.copy_(wave * (2 / tensor[0].numel()) ** 0.5 if tensor.dim() == 4 else 1 + wave / 2)


def test_features_are_the_packages() -> None:
    network = Inception().double().eval()
    fill(network)
    x = torch.sin(0.11 * torch.arange(2 * 3 * 64 * 64, dtype=torch.float64)).view(2, 3, 64, 64)
    with torch.no_grad():
        found = network(x)
    assert found.shape == (2, 1024)
    golden = torch.tensor(GOLDEN).double()
    torch.testing.assert_close(found[0, 2::100], golden, rtol=1e-5, atol=1e-5)
    assert sum(p.numel() for p in network.parameters()) == 10_270_240


def test_images_become_what_caffe_sees() -> None:
    images = torch.rand(2, 3, 4, 4)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    seen = CaffePixels()((images - mean) / std)
    blue, green, red = seen.unbind(1)
    for channel, k, less in ((red, 0, 128), (green, 1, 117), (blue, 2, 104)):
        torch.testing.assert_close(channel, 255 * images[:, k] - less, rtol=1e-5, atol=1e-4)
