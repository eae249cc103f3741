"""Networks: shapes, starts and precision; weights of torchvision and of BN-Inception in ours."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torchvision.models import get_model
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains.download import file_sha256
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.networks import model as networks
from contrastbench.domains.image.networks.inception import CaffePixels, Inception
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.networks.resnet import ResNet, Shortcut
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import both_views
from made_images import refused

SMALL = {"width": 0.0625, "projection": (8, 6), "precision": "float32", "size": 8}


def model(steps: int = 10, **recipe: object) -> ImageModel:
    torch.manual_seed(0)
    return ImageModel(make_recipe("image", {**SMALL, **recipe}), steps)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_no_narrow_1x1_convolution_has_a_stride(name: str) -> None:
    """oneDNN writes beyond its memory in the backward pass of one with less than 16 channels."""
    for width in (0.0625, 0.125, 0.2, 0.25, 1.0):
        with torch.device("meta"):
            convolutions = [m for m in ResNet(name, width).modules() if isinstance(m, nn.Conv2d)]
        strided = [c for c in convolutions if c.kernel_size == (1, 1) and c.stride != (1, 1)]
        assert all(c.in_channels >= 16 for c in strided)
        assert len(strided) > 0


@pytest.mark.parametrize("side", [8, 9])
def test_a_narrow_shortcut_is_torchs_convolution(side: int) -> None:
    ours = Shortcut(4, 6, 2).double()
    theirs = nn.Conv2d(4, 6, 1, 2, bias=False).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 4, side, side, dtype=torch.float64)
    results = []
    for layer in (ours, theirs):
        pixels = x.clone().requires_grad_()
        out = layer(pixels)
        out.square().sum().backward()
        results.append((out, pixels.grad, layer.weight.grad))
    for a, b in zip(*results, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_the_stem_for_small_images_keeps_their_size() -> None:
    with torch.device("meta"):
        small, ordinary = ResNet("resnet18", small=True), ResNet("resnet18")
        assert nn.Sequential(*list(small)[:3])(torch.empty(1, 3, 32, 32)).shape == (1, 64, 32, 32)
        large = nn.Sequential(*list(ordinary)[:4])(torch.empty(1, 3, 224, 224))
        assert large.shape == (1, 64, 56, 56)
        assert not any(isinstance(layer, nn.MaxPool2d) for layer in small)
        kernels = [
            ImageModel(ImageRecipe(size=size), 1).encoder[0].kernel_size[0] for size in (64, 65)
        ]
    assert kernels == [3, 7]


def linear_shapes(head: nn.Sequential) -> list[tuple[int, ...]]:
    return [tuple(m.weight.shape) for m in head if isinstance(m, nn.Linear)]


@pytest.mark.parametrize(
    ("preset", "features", "shapes"),
    [
        ("adnce", 2048, [(512, 2048), (128, 512)]),
        ("renyicl-cifar", 512, [(2048, 512), (128, 2048)]),
        ("renyicl-imagenet", 2048, [(4096, 2048), (256, 4096)]),
        ("moco-v3-imagenet", 2048, [(4096, 2048), (256, 4096)]),
        ("byol-imagenet", 2048, [(4096, 2048), (256, 4096)]),
        ("simsiam-imagenet", 2048, [(2048, 2048)] * 3),
        ("simclr-imagenet", 2048, [(2048, 2048), (128, 2048)]),
    ],
)
def test_heads_are_as_published(preset: str, features: int, shapes: list[tuple[int, int]]) -> None:
    with torch.device("meta"):
        net = ImageModel(make_recipe("image", {"preset": preset}), 1)
    assert net.encoder.features == features
    assert linear_shapes(net.projector) == shapes
    kinds = [type(m).__name__ for m in net.projector]
    assert kinds[:4] == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
    if preset in ("byol-imagenet", "simsiam-imagenet"):
        hidden = {"byol-imagenet": 4096, "simsiam-imagenet": 512}[preset]
        last = shapes[-1][0]
        assert linear_shapes(net.predictor) == [(hidden, last), (last, hidden)]
        assert net.predictor[-1].bias is not None
        assert isinstance(net.projector[-1], nn.BatchNorm1d) == (preset == "simsiam-imagenet")
        assert hasattr(net, "target")
    elif preset in ("renyicl-imagenet", "moco-v3-imagenet"):
        assert kinds[4:] == ["BatchNorm1d"]
        assert not net.projector[4].affine
        assert linear_shapes(net.predictor) == [(4096, 256), (256, 4096)]
        assert [m.bias for m in net.modules() if isinstance(m, nn.Linear)] == [None] * 6, (
            "RenyiCL's and MoCo v3's builder.py: no layer of a head has a bias"
        )
    else:
        assert kinds[4:] == (["BatchNorm1d"] if preset == "simclr-imagenet" else [])
        assert isinstance(net.predictor, nn.Identity)
        assert not hasattr(net, "target")


def test_the_stem_of_the_released_codes_is_drawn_as_pytorch_draws_it() -> None:
    """model.py of DCL, HCL, ADNCE and AttentionNCE puts a new nn.Conv2d in place of the stem.

    Uniform with bound 1 / sqrt(27) at any width; torchvision's draw has std sqrt(2 / (9 * 64)).
    """
    for stem_init, std, largest in (
        ("pytorch", 27**-0.5 / 3**0.5, 27**-0.5),
        ("kaiming", 0.0589, 1),
    ):
        torch.manual_seed(0)
        network = ResNet("resnet18", 1.0, True, stem_init)
        first, second = network.conv1, network.layer1[0]
        assert first.weight.std().item() == pytest.approx(std, rel=0.05)
        assert first.weight.abs().max().item() <= largest
        assert second.conv1.weight.std().item() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_residual_blocks_may_start_as_their_shortcuts(name: str) -> None:
    """zero_init_residual=True in RenyiCL's main_renyicl.py: torchvision's, written out."""
    values = {"encoder": name, "width": 0.125, "projection": (8, 6), "size": 32}
    net = ImageModel(make_recipe("image", {**values, "zero_init_residual": True}), 1).encoder
    x = torch.randn(2, 8 * (4 if name == "resnet50" else 1), 4, 4)
    block = net.layer1[1]
    assert torch.equal(block.eval()(x), x.relu())
    zeros = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d) and not m.weight.any()]
    blocks = [m for m in net.modules() if isinstance(m, BasicBlock | Bottleneck)]
    assert len(zeros) == len(blocks) == (16 if name == "resnet50" else 8)
    usual = ImageModel(make_recipe("image", values), 1).encoder
    assert all(m.weight.all() for m in usual.modules() if isinstance(m, nn.BatchNorm2d))


def test_a_width_scales_every_layer() -> None:
    with torch.device("meta"):
        wide, narrow = ResNet("resnet18"), ResNet("resnet18", 0.25)
        assert narrow(torch.empty(1, 3, 64, 64)).shape == (1, 128)
    for a, b in zip(wide.parameters(), narrow.parameters(), strict=True):
        assert a.shape[0] == 4 * b.shape[0]


def test_bf16_embeds_about_the_same_and_keeps_weights_in_float32() -> None:
    x = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    full, half = model(), model(precision="bf16")
    a, b = full(x), half(x)
    assert b.dtype == torch.bfloat16
    assert both_views(b, b).anchor.dtype == torch.float32
    assert 0 < (a - b.float()).norm() / a.norm() < 0.05
    assert {p.dtype for p in half.parameters()} == {torch.float32}
    assert half.features(x).dtype == torch.float32


@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50"])
def test_features_are_torchvisions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    theirs, ours, x = get_model(name).eval(), ResNet(name).eval(), torch.randn(1, 3, 72, 72)
    for buffer in theirs.buffers():  # as if it had been trained
        buffer.add_(torch.rand_like(buffer.float()).to(buffer.dtype))
    monkeypatch.setattr(networks, "pretrained_weights", lambda url, root: theirs.state_dict())
    networks.load_weights(ours, name, None)
    theirs.fc = torch.nn.Identity()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-6, atol=1e-6)


def test_bn_inception_takes_weights_without_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files without counters are read, also with a classifier behind the encoder."""
    kept = {
        name: torch.rand_like(tensor)
        for name, tensor in Inception().state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    theirs = {f"{k}.of_another_name": tensor for k, tensor in enumerate(kept.values())}
    asked = []
    classifier = {"last_linear.weight": torch.zeros(1000, 1024)}
    monkeypatch.setattr(
        networks,
        "pretrained_weights",
        lambda url, root: asked.append(url) or {**theirs, **classifier},
    )
    networks.load_weights(ours := Inception(), "bn_inception", None)
    assert asked == [networks.INCEPTION_URL]
    assert all(torch.equal(ours.state_dict()[name], tensor) for name, tensor in kept.items())
    theirs.popitem()
    again = partial(networks.load_weights, ours, "bn_inception", None)
    refused(again, r"bn_inception-52deb4733.pth is damaged")


def test_weights_lie_in_the_data_root(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "weights")
    digits = file_sha256(tmp_path / "weights")[:8]
    path = (tmp_path / "weights").rename(tmp_path / f"a-{digits}.pth")
    url = f"https://download.pytorch.org/models/{path.name}"
    assert networks.pretrained_weights(url, tmp_path)["w"].tolist() == [1, 1]


def test_a_download_is_kept_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    torch.save({"w": torch.ones(2)}, made)
    digits, asked = file_sha256(made)[:8], []

    def download(url: str, path: str, begins: str) -> None:
        asked.append(begins)
        Path(path).write_bytes(made.read_bytes())

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    for _ in range(2):
        found = networks.pretrained_weights(
            f"https://download.pytorch.org/models/a-{digits}.pth", None
        )
        assert found["w"].tolist() == [1, 1]
    assert asked == [digits]


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
