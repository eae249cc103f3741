"""Every image operation against torchvision's with the same parameters, and the draws."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torchvision.transforms as T
from torch import Tensor
from torchvision.transforms import functional as F

from contrastbench.domains.image.preprocessing import published_policy
from contrastbench.domains.image.views import colour, draws, policies, spatial
from contrastbench.domains.image.views import transforms as views
from contrastbench.domains.registry import make_recipe
from made_images import N, floats, picture, rng, same_distribution

EXACT = 2e-6  # float32 in another order of operations


def spread(low: float, high: float) -> Tensor:
    return torch.linspace(low, high, N)


def close(ours: Tensor, theirs: list[Tensor], atol: float = EXACT) -> None:
    torch.testing.assert_close(ours, torch.stack(theirs), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("ours", "theirs", "ends", "atol"),
    [
        (colour.hue, F.adjust_hue, (-0.5, 0.5), 1e-5),  # dividing by the chroma adds rounding
        (colour.solarise, F.solarize, (0.0, 1.0), 0.0),
    ],
    ids=["hue", "solarise"],
)
def test_colour_operations_are_torchvisions(
    ours: Any, theirs: Any, ends: tuple[float, float], atol: float
) -> None:
    images, parameters = floats(), spread(*ends)
    expected = [theirs(x, p) for x, p in zip(images, parameters.tolist(), strict=True)]
    close(ours(images, parameters), expected, atol)


def test_grey_is_torchvisions() -> None:
    images, chosen = floats(), torch.arange(N) % 2 == 0
    expected = [F.rgb_to_grayscale(x, 3) if c else x for x, c in zip(images, chosen, strict=True)]
    close(colour.to_grey(images, chosen), expected)
    assert torch.equal(colour.to_grey(images, chosen)[1::2], images[1::2])


def test_jitter_is_torchvisions_in_every_order() -> None:
    orders = torch.cartesian_prod(*[torch.arange(4)] * 4)
    orders = orders[orders.sort(dim=1).values.eq(torch.arange(4)).all(dim=1)]
    assert len(orders) == N == math.factorial(4)
    factors, _ = draws.draw_jitter(
        N, policies.Policy(32, jitter=1.0, strength=(0.8, 0.8, 0.8, 0.4)), rng()
    )
    images, expected = floats(), []
    steps = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
    for x, f, order in zip(images, factors.tolist(), orders.tolist(), strict=True):
        for k in order:
            x = steps[k](x, f[k])
        expected.append(x)
    close(colour.jitter(images.clone(), factors, orders), expected, 2e-5)


@pytest.mark.parametrize(
    ("shape", "size"), [((32, 32), 32), ((40, 56), 24), ((48, 30), 40), ((96, 96), 32)]
)
def test_crops_are_torchvisions(shape: tuple[int, int], size: int) -> None:
    images, flipped = picture(*shape), torch.arange(N) % 2 == 0
    boxes = draws.draw_crops(N, *shape, policies.Policy(32, (0.05, 1.0)), rng())
    expected = []
    for x, box, flip in zip(images, boxes.int().tolist(), flipped, strict=True):
        x = F.resized_crop(x.float() / 255, *box, [size, size], antialias=True)
        expected.append(F.hflip(x) if flip else x)
    close(spatial.crop(spatial.to_float(images), boxes, size, flipped), expected, 1e-5)


@pytest.mark.parametrize(
    ("shape", "size"), [((32, 32), 32), ((64, 64), 32), ((150, 201), 96), ((77, 40), 32)]
)
def test_evaluation_is_torchvisions(shape: tuple[int, int], size: int) -> None:
    images = picture(*shape, n=3)
    transform = T.Compose([T.Resize(views.stored_size(size), antialias=True), T.CenterCrop(size)])
    expected = images.float() / 255 if shape == (size, size) else transform(images.float() / 255)
    close(views.evaluation_view(images, size), list(expected), 1e-5)


@pytest.mark.parametrize("size", [32, 96])
def test_blur_is_torchvisions(size: int) -> None:
    images, sigma = picture(size, size).float() / 255, spread(0.1, 2.0)
    kernel = 2 * max(1, size // 20) + 1
    none = spatial.blur(images[:0], sigma[:0])
    assert none.shape == (0, 3, size, size), "of a small batch none may be chosen"
    theirs = [F.gaussian_blur(x, kernel, s) for x, s in zip(images, sigma.tolist(), strict=True)]
    close(spatial.blur(images, sigma), theirs)


def test_erasing_is_torchvisions() -> None:
    images, boxes = floats(), draws.draw_erased(N, policies.Policy(32, erasing=0.7), rng())
    noise = torch.rand(images.shape, generator=rng(1))
    expected = [
        F.erase(x, t, left, h, w, e[:, t : t + h, left : left + w])
        for x, e, (t, left, h, w) in zip(images, noise, boxes.int().tolist(), strict=True)
    ]
    assert 0 < int((boxes[:, 2] > 0).sum()) < N
    assert torch.equal(spatial.erase(images, boxes, noise), torch.stack(expected))


def test_normalise_is_torchvisions() -> None:
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    ours = views.normalise(floats(), mean, std)
    close(ours, [F.normalize(x, list(mean), list(std)) for x in floats()], 1e-6)
    assert ours.is_contiguous(memory_format=torch.channels_last)


# What is drawn


@pytest.mark.parametrize(("shape", "scale"), [((32, 32), (0.08, 1.0)), ((40, 120), (0.05, 0.2))])
def test_crops_are_drawn_as_torchvisions_are(
    shape: tuple[int, int], scale: tuple[float, float]
) -> None:
    n, image = 2000, torch.empty(3, *shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.tensor(
            [T.RandomResizedCrop.get_params(image, list(scale), [3 / 4, 4 / 3]) for _ in range(n)]
        )
    ours = draws.draw_crops(5 * n, *shape, policies.Policy(32, scale), rng())
    top, left, height, width = ours.unbind(1)
    assert top.min() >= 0 <= left.min()
    assert bool(((top + height <= shape[0]) & (left + width <= shape[1])).all())
    assert torch.equal(ours, ours.round())
    same_distribution(ours, theirs.float())
    same_distribution((height * width)[:, None], theirs[:, 2:3] * theirs[:, 3:].float())


def test_crops_of_pictures_of_several_shapes_are_drawn_as_those_of_one() -> None:
    shapes, n = ((32, 32), (40, 120), (10, 100)), 4000
    sides = torch.tensor(shapes).repeat(n, 1).float()
    ours = draws.draw_crops(len(sides), *sides.T, policies.Policy(32), rng())
    for k, shape in enumerate(shapes):
        alone = draws.draw_crops(n, *shape, policies.Policy(32), rng(k))
        same_distribution(ours[k::3], alone)


def test_crops_that_never_fit_are_the_middle() -> None:
    boxes = draws.draw_crops(50, 10, 100, policies.Policy(32, (0.9, 1.0)), rng())
    assert boxes.unique(dim=0).tolist() == [[0, 43, 10, 13]]
    one = T.RandomResizedCrop.get_params(torch.empty(3, 10, 100), [0.9, 1.0], [3 / 4, 4 / 3])
    assert list(one) == [0, 43, 10, 13]


def test_jitter_is_drawn_uniformly_and_in_any_order() -> None:
    n = 48_000
    factors, order = draws.draw_jitter(n, policies.Policy(32, jitter=0.8), rng())
    unchanged = (factors == torch.tensor([1.0, 1.0, 1.0, 0.0])).all(dim=1)
    assert unchanged.float().mean().item() == pytest.approx(0.2, abs=0.008)
    drawn = factors[~unchanged]
    uniform = torch.linspace(0, 1, 10_001)[:, None] * torch.tensor([0.8, 0.8, 0.8, 0.2])
    same_distribution(drawn, uniform + torch.tensor([0.6, 0.6, 0.6, -0.1]))
    counts = (order * torch.tensor([64, 16, 4, 1])).sum(dim=1).bincount()
    assert (counts > 0).sum() == 24
    assert bool(((counts[counts > 0] - n / 24).abs() < 4.5 * math.sqrt(n / 24)).all())


# Whole views


@pytest.mark.parametrize("kind", ["none", "base", "hard"])
@pytest.mark.parametrize(("shape", "size"), [((8, 8), 32), ((32, 32), 32), ((110, 100), 96)])
def test_views_have_their_size_and_range_and_depend_on_the_generator_alone(
    kind: policies.PolicyKind, shape: tuple[int, int], size: int
) -> None:
    images = picture(*shape)
    kept = images.clone()
    policy = replace(policies.policy(kind, size), solarise=0.3 if kind == "hard" else 0.0)
    one, again, other = (views.augment(images, policy, rng(seed)) for seed in (1, 1, 2))
    assert (one.shape, one.dtype) == ((N, 3, size, size), torch.float32)
    assert one.min() >= -EXACT
    assert one.max() <= 1 + EXACT
    assert torch.equal(one, again)
    assert not torch.equal(one[3:], other[3:])
    assert torch.equal(images, kept), "images of a resident set are never overwritten"


def test_a_view_is_its_operations_one_after_the_other() -> None:
    """The order and the parameters of `augment`, replayed with torchvision on each image."""
    images, policy, draw = picture(), policies.policy("base", 32), rng(5)
    flipped = draws.bernoulli(N, 0.5, draw)
    boxes = draws.draw_crops(N, 32, 32, policies.Policy(32), draw)
    factors, order = draws.draw_jitter(N, policies.Policy(32, jitter=0.8), draw)
    grey = draws.bernoulli(N, 0.2, draw)
    steps = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
    expected = []
    for i, image in enumerate(images):
        x = F.resized_crop(image.float() / 255, *boxes[i].int().tolist(), [32, 32], antialias=True)
        x = F.hflip(x) if flipped[i] else x
        for k in order[i].tolist():
            x = steps[k](x, factors[i, k].item())
        expected.append(F.rgb_to_grayscale(x, 3) if grey[i] else x)
    close(views.augment(images, policy, rng(5)), expected, 2e-5)


def test_a_noisy_crop_shows_a_part_of_the_crop_without_colours_of_its_own() -> None:
    policy = replace(policies.policy("none", 32), scale=(1.0, 1.0), flip=0.0, again=0.2)
    images, generator = picture(32, 32), rng(3)
    found = views.augment(images, policy, generator)
    again = rng(3)
    whole = views.random_crop(images, policy, again)
    boxes = draws.draw_crops(N, 32, 32, replace(policy, scale=(0.2, 0.2)), again)
    expected = [
        F.resized_crop(x, *box, [32, 32], antialias=True)
        for x, box in zip(whole, boxes.int().tolist(), strict=True)
    ]
    close(found, expected, 1e-5)
    assert ((boxes[:, 2] * boxes[:, 3] / 32**2 - 0.2).abs() < 0.03).all()


def test_harder_views_have_the_order_of_the_released_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """RenyiCL's main_renyicl.py: jitter, blur, RandAugment, solarisation, greyscale."""
    seen: list[str] = []
    for name in views.OPERATIONS:
        monkeypatch.setitem(views.OPERATIONS, name, lambda x, *_, name=name: seen.append(name) or x)
    hard = replace(policies.policy("hard", 96), solarise=0.2)
    views.augment(picture(), hard, rng())
    views.augment(picture(), replace(hard, randaugment=None), rng())
    assert seen[:5] == ["jitter", "blur", "randaugment", "solarise", "grey"]
    assert seen[5:] == ["jitter", "grey", "blur", "solarise"]


def test_published_views() -> None:
    small, hard = policies.policy("base", 32), policies.policy("hard", 32)
    assert (hard.randaugment, hard.erasing) == ((3, 5.0), 0.2), "B.4"
    assert replace(hard, randaugment=None, erasing=0.0) == small
    released, cifar = (
        published_policy(make_recipe("image", {"preset": name}))
        for name in ("adnce", "renyicl-cifar")
    )
    assert released == replace(small, blur=0.5), "GaussianBlur(kernel_size=int(0.1 * 32))"
    assert cifar == hard


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
    found = draws.draw_warps(n, policies.Policy(32, (0.2, 1.0), ratio, rotation=0.3), rng())
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
    return draws.draw_tints(N, policies.Policy(32, jitter=1.0, strength=strength), rng())


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
    matrices, added = draws.draw_tints(n, policies.Policy(32, jitter=0.8, strength=strength), rng())
    same = (matrices - torch.eye(3)).abs().amax((1, 2)) < 1e-3
    assert same.float().mean().item() == pytest.approx(0.2, abs=0.013)
    assert not added[same].any()
    grey, _ = draws.draw_tints(n, policies.Policy(32, strength=strength, grey=0.2), rng())
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
