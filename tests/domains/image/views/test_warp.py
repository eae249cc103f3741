"""Warps and tints against torchvision's operations where these are the same, and their draws."""

import math

import pytest
import torch
from torch import Tensor

pytest.importorskip("torchvision")
from torchvision.transforms import functional as F

from contrastbench.domains.image.preprocessing import published_policy
from contrastbench.domains.image.views import colour, draws, spatial
from contrastbench.domains.image.views import transforms as views
from contrastbench.domains.registry import make_recipe
from made_images import N, floats, picture, rng, same_distribution


def maps(*rows: float) -> Tensor:
    return torch.tensor(rows).view(1, 2, 3).expand(N, 2, 3)


@pytest.mark.parametrize(
    ("map_", "expected"),
    [
        ((1, 0, 0, 0, 1, 0), lambda x: x),
        ((-1, 0, 0, 0, 1, 0), lambda x: x.flip(3)),
        ((0, -1, 0, 1, 0, 0), lambda x: x.rot90(1, (2, 3))),
        ((0.5, 0, -0.5, 0, 0.5, -0.5), lambda x: F.resize(x[..., :16, :16], [32, 32])),
    ],
)
def test_a_warp_moves_pixels(map_: tuple[float, ...], expected) -> None:
    warped = spatial.warp(picture(), maps(*map_), 32, "border")
    inner = warped[..., 1:-2, 1:-2]  # a resized part of an image does not see its neighbours
    torch.testing.assert_close(inner, expected(floats())[..., 1:-2, 1:-2], rtol=0, atol=2e-5)


def test_crops_of_warps_have_the_areas_and_ratios_that_are_asked_for() -> None:
    n, ratio = 20_000, (3 / 4, 4 / 3)
    found = draws.draw_warps(n, (0.2, 1.0), ratio, 0.5, 0.3, rng())
    across, down, centre = found.unbind(2)
    wide, tall = across.norm(dim=1), down.norm(dim=1)
    line = torch.linspace(0, 1, 10_001)[:, None]
    same_distribution((wide * tall)[:, None], 0.2 + 0.8 * line)
    same_distribution((wide / tall).log()[:, None], math.log(4 / 3) * (2 * line - 1))
    mirrored = across[:, 0] * down[:, 1] < 0
    assert mirrored.float().mean().item() == pytest.approx(0.5, abs=0.016)
    same_distribution(torch.atan2(-down[:, 0], down[:, 1])[:, None], 0.3 * (2 * line - 1))
    assert bool((centre[:, 0].abs() <= (1 - wide).abs() + 1e-6).all())


def one_factor(strength: tuple[float, float, float, float]) -> tuple[Tensor, Tensor]:
    return draws.draw_tints(N, 1.0, strength, 0.0, rng())


@pytest.mark.parametrize(
    ("place", "theirs"),
    [(0, F.adjust_brightness), (1, F.adjust_contrast), (2, F.adjust_saturation)],
)
def test_a_tint_of_one_kind_is_torchvisions(place: int, theirs) -> None:
    strength = tuple(0.4 * (k == place) for k in range(4))
    noise = torch.rand(6, N, generator=rng())[place]
    expected = [theirs(x, 0.6 + 0.8 * f) for x, f in zip(floats(), noise.tolist(), strict=True)]
    ours = colour.tint(floats(), *one_factor(strength))
    torch.testing.assert_close(ours, torch.stack(expected), rtol=0, atol=5e-4)


def test_hue_is_turned_at_equal_luma() -> None:
    images = floats() * 0.2 + 0.4  # nothing leaves [0, 1]
    turned = colour.tint(images, *one_factor((0, 0, 0, 0.5)))
    assert (turned - images).abs().max() > 0.05
    torch.testing.assert_close(colour.grey(turned), colour.grey(images), rtol=0, atol=1e-3)


def test_tints_are_left_out_and_grey_at_their_rates() -> None:
    n, strength = 20_000, (0.4, 0.4, 0.4, 0.1)
    matrices, added = draws.draw_tints(n, 0.8, strength, 0.0, rng())
    same = (matrices - torch.eye(3)).abs().amax((1, 2)) < 1e-3
    assert same.float().mean().item() == pytest.approx(0.2, abs=0.013)
    assert not added[same].any()
    grey, _ = draws.draw_tints(n, 0.0, strength, 0.2, rng())
    colourless = (grey - torch.tensor(colour.LUMA)).abs().amax((1, 2)) < 1e-3
    assert colourless.float().mean().item() == pytest.approx(0.2, abs=0.013)


def test_a_recipe_warps_and_then_blurs() -> None:
    recipe = make_recipe("image", {"preset": "photographs", "blur": 1.0, "rotation": 0.1})
    kind = published_policy(recipe)
    assert [name for name in kind.operations if getattr(kind, name)] == ["tint", "blur"]
    images = picture()
    one, two = (views.augment(images, kind, rng(0)) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == (N, 3, 32, 32)
    assert -1e-6 <= one.min() <= one.max() <= 1 + 1e-6
