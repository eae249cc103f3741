"""Ten training steps as the released image code of ADNCE takes them, in float64.

The facts are those of image/model.py and image/main.py of https://github.com/junkangwu/ADNCE at
commit cdd110f85402641d52762ba63aa2a17ba907a6f9: a ResNet-50 whose stem is a 3x3 convolution without
max-pooling, each view with batch statistics of its own, the head Linear-BN-ReLU-Linear, Adam 1e-3
with decay 1e-6 on all parameters, and ADNCE's loss on 2N anchors: weights by the cosine itself,
detached, divided by their mean over the 2N - 2 negatives, the positive in the denominator. Written
out here without a module of ours; the values that it gave are frozen.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.image import domain as image
from contrastbench.domains.image.data.images import on_device
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import get_loss

CPU = torch.device("cpu")
BLOCKS = (3, 4, 6, 3)  # of ResNet-50
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
TEMPERATURE, MU, SIGMA = 0.4, 0.7, 0.5  # those of CIFAR-10
LOSSES = [
    *(3.4931373491923097, 3.232377377001703, 2.9267538816859435, 2.829023495568554),
    *(2.5736040747881948, 2.448774502813321, 2.2808752831378247, 2.1927943958166867),
    *(2.115236985394476, 2.0459351721113115),
]

Weights = dict[str, Tensor]


def pixels() -> Tensor:
    """(16, 3, 16, 16) uint8, generated: no channel is constant, which would amplify rounding."""
    drawn = np.random.RandomState(1).randint(0, 256, (16, 3, 16, 16))
    return torch.from_numpy(drawn.astype(np.uint8))


def views(images: Tensor) -> list[Tensor]:
    column = (1, 3, 1, 1)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(column) for v in (MEAN, STD))
    return [(x.double() / 255 - mean) / std for x in (images, images.roll(2, -1).flip(-1))]


def weights(shapes: dict[str, torch.Size]) -> Weights:
    """Numbers that no release of torch draws otherwise: He's for matrices, 1 and 0 for norms."""
    rng, found = np.random.RandomState(0), {}
    for name, shape in shapes.items():
        x = rng.standard_normal(shape)
        if len(shape) > 1:
            x *= np.sqrt(2 / np.prod(shape[1:]))
        elif name == "projector.3.bias":
            x *= 0.1
        else:
            x = np.full(shape, float(name.endswith("weight")))
        found[name] = torch.from_numpy(x)
    return found


def norm(x: Tensor, w: Weights, name: str) -> Tensor:
    axes = [axis for axis in range(x.ndim) if axis != 1]
    shape = [1, -1, *[1] * (x.ndim - 2)]
    centred = x - x.mean(axes, keepdim=True)
    scaled = centred / (centred.square().mean(axes, keepdim=True) + 1e-5).sqrt()
    return scaled * w[f"{name}.weight"].view(shape) + w[f"{name}.bias"].view(shape)


def bottleneck(x: Tensor, w: Weights, name: str, stride: int) -> Tensor:
    y = norm(conv2d(x, w[f"{name}.conv1.weight"]), w, f"{name}.bn1").relu()
    y = conv2d(y, w[f"{name}.conv2.weight"], stride=stride, padding=1)
    y = norm(y, w, f"{name}.bn2").relu()
    y = norm(conv2d(y, w[f"{name}.conv3.weight"]), w, f"{name}.bn3")
    if f"{name}.downsample.0.weight" in w:
        shortcut = conv2d(x, w[f"{name}.downsample.0.weight"], stride=stride)
        x = norm(shortcut, w, f"{name}.downsample.1")
    return (x + y).relu()


def embed(x: Tensor, w: Weights) -> Tensor:
    x = norm(conv2d(x, w["encoder.conv1.weight"], padding=1), w, "encoder.bn1").relu()
    for stage, count in enumerate(BLOCKS):
        for block in range(count):
            name = f"encoder.layer{stage + 1}.{block}"
            x = bottleneck(x, w, name, 2 if stage and not block else 1)
    h = x.mean((2, 3)) @ w["projector.0.weight"].T
    z = norm(h, w, "projector.1").relu() @ w["projector.3.weight"].T + w["projector.3.bias"]
    return z / z.norm(dim=1, keepdim=True)


def adnce(one: Tensor, two: Tensor) -> Tensor:
    z, n, losses = torch.cat([one, two]), len(one), []
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        s = z[[j for j in range(2 * n) if j not in (i, partner)]] @ z[i]
        weight = (-((s.detach() - MU) ** 2) / (2 * SIGMA**2)).exp()
        positive = (z[i] @ z[partner] / TEMPERATURE).exp()
        negative = (weight / weight.mean() * (s / TEMPERATURE).exp()).sum()
        losses.append(-(positive / (positive + negative)).log())
    return torch.stack(losses).mean()


def ten_steps(w: Weights, x: list[Tensor]) -> list[float]:
    w = {name: tensor.clone().requires_grad_() for name, tensor in w.items()}
    first, second = ({name: torch.zeros_like(t) for name, t in w.items()} for _ in range(2))
    losses = []
    for step in range(1, 11):
        loss = adnce(*(embed(view, w) for view in x))
        losses.append(loss.item())
        for (name, tensor), g in zip(
            w.items(), torch.autograd.grad(loss, list(w.values())), strict=True
        ):
            g = g + 1e-6 * tensor.detach()
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g**2
            m, v = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            tensor.data -= 1e-3 * m / (v.sqrt() + 1e-8)
    return losses


def small_domain(monkeypatch: pytest.MonkeyPatch) -> ImageDomain:
    """Our image domain by ADNCE's preset, narrow, on these images, views and weights."""
    labels = torch.arange(16) % 2
    parts = {name: (pixels(), labels) for name in ("train", "test")}
    made, _ = on_device(parts, ["a", "b"], CPU)
    monkeypatch.setattr(type(image.ADAPTER), "read", lambda *_: (made, "made"))
    narrow = {"width": 0.0625, "projection": (32, 16), "batch_size": 16, "epochs": 10}
    recipe = make_recipe("image", {"preset": "adnce", **narrow})
    domain = ImageDomain("made", recipe, 0, None, CPU)
    model = domain.model().double()
    drawn = weights({name: p.shape for name, p in model.named_parameters()})
    model.load_state_dict({**model.state_dict(), **drawn})
    monkeypatch.setattr(domain, "model", lambda: model)
    monkeypatch.setattr(domain, "views", lambda images, rng: views(images.pixels))
    return domain


def test_ten_steps_are_those_of_adnces_released_code(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = small_domain(monkeypatch)
    model: Any = domain.model()
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    loss = get_loss("adnce", temperature=TEMPERATURE, mu=MU, sigma=SIGMA)
    _, history = train(domain, loss)
    plain = ten_steps(start, views(pixels()))
    assert plain == pytest.approx(LOSSES, rel=0, abs=1e-10)
    assert history.loss_by_epoch == pytest.approx(LOSSES, rel=0, abs=1e-10)
