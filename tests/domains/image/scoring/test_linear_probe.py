"""Linear classifiers that are trained on views."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.preprocessing import Preprocessing, published_policy
from contrastbench.domains.image.recipe import PROBES
from contrastbench.domains.image.scoring import linear_probe
from contrastbench.domains.image.scoring.linear_probe import (
    first_weights,
    optimizer_of,
    policy_of,
    train_probe,
)
from contrastbench.domains.image.views.policies import Policy
from contrastbench.domains.registry import make_recipe
from made_images import grey_levels as images
from made_images import small_model as model

PREPROCESSING = Preprocessing((0.5,) * 3, (0.25,) * 3, 8)


def plain(size: int) -> Policy:
    return Policy(size, scale=(0.999, 1.0), ratio=(1.0, 1.0), flip=0.0)


@pytest.mark.parametrize("name", PROBES)
def test_probes_learn_on_views_and_leave_the_encoder_alone(name: str) -> None:
    net, whole = model(), images(64)
    columns = PREPROCESSING.features(net, whole).x.shape[1]
    before = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    moved, classifier = train_probe(PROBES[name], net, whole, columns, PREPROCESSING, plain(8), 0)
    assert all(torch.equal(tensor, before[key]) for key, tensor in net.state_dict().items())
    statistics = [
        key for key, tensor in moved.state_dict().items() if not torch.equal(tensor, before[key])
    ]
    assert bool(statistics) == (name == "paper")
    assert all("running" in key or "num_batches" in key for key in statistics)
    assert not any("projector" in key for key in statistics), "what is not scored is not run"
    held = PREPROCESSING.features(moved, whole)
    assert (classifier.scores(held.x).argmax(1) == held.y).float().mean() > (
        0.4 if name in ("paper", "strict") else 0.9
    )


def test_a_recipe_may_give_the_probe_another_learning_rate() -> None:
    """AttentionNCE's linear.py: Adam at 1e-2 on STL-10, at 1e-3 elsewhere."""
    for values, lr in (({}, 1e-3), ({"probe_lr": 1e-2}, 1e-2)):
        probe = make_recipe("image", {"probe": "paper", **values}).probe_on_views
        assert optimizer_of(probe, [nn.Parameter(torch.zeros(1))]).defaults["lr"] == lr
        assert replace(probe, lr=1e-3) == PROBES["paper"]


@pytest.mark.parametrize("cosine", [True, False])
def test_the_rate_follows_the_declared_schedule(
    cosine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    class Watched(torch.optim.SGD):
        def step(self, *args: Any) -> None:  # type: ignore[override]
            rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(linear_probe, "optimizer_of", lambda probe, p: Watched(p, probe.lr))
    net, whole = model(), images(8)
    probe = replace(PROBES["renyicl"], epochs=2, cosine=cosine)
    train_probe(probe, net, whole, net.encoder.features, PREPROCESSING, plain(8), 0)
    assert rates == pytest.approx([0.3, 0.15 if cosine else 0.3])


def test_a_probe_is_the_loop_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """`strict`, written out: Adam 1e-3 with decay 1e-6 on the cross-entropy of features."""
    monkeypatch.setattr(Images, "crops", lambda part, kinds, rng: [part.pixels / 255] * len(kinds))
    net, whole = model().eval(), images(24)
    probe = replace(PROBES["strict"], batch=10, epochs=3)
    columns = PREPROCESSING.features(net, whole).x.shape[1]
    _, classifier = train_probe(probe, net, whole, columns, PREPROCESSING, plain(8), 7)
    torch.manual_seed(7)
    head = nn.Linear(columns, 4)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3, weight_decay=1e-6)
    x = PREPROCESSING.features(net, whole).x
    for epoch in range(3):
        rng = linear_probe.generator(torch.device("cpu"), 7, epoch)
        order = torch.randperm(24, generator=rng)
        for part in (order[:10], order[10:20], order[20:]):
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(x[part]), whole.labels[part]).backward()
            optimizer.step()
    probes = torch.randn(500, columns) * x.std() + x.mean()
    assert (classifier.scores(probes).argmax(1) == head(probes).argmax(dim=1)).float().mean() > 0.99


def test_probes_of_the_released_codes_train_on_the_views_of_the_training_with_their_blur() -> None:
    adnce, cifar = (make_recipe("image", {"preset": name}) for name in ("adnce", "renyicl-cifar"))
    for name in ("paper", "strict"):
        assert policy_of(PROBES[name], adnce) == published_policy(adnce)
        assert policy_of(PROBES[name], cifar).blur == 0.0
    assert policy_of(PROBES["renyicl"], adnce) == Policy(32)


def test_the_imagenet_probe_starts_near_zero() -> None:
    """MoCo v3's and RenyiCL's main_lincls.py: weights of deviation 0.01, biases of zero."""
    torch.manual_seed(0)
    head = first_weights(PROBES["renyicl-imagenet"], 2048, 100)
    assert not head.bias.any()
    assert head.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert abs(head.weight.mean().item()) < 1e-4
    assert first_weights(PROBES["renyicl"], 2048, 100).bias.any(), "B.4 says nothing: PyTorch's own"
