"""RandAugment and RandomErasing against the package `timm`, which RényiCL's appendix B.3 names.

Compared are `timm.data.auto_augment.rand_augment_transform("rand-n2-m10-mstd0.5")`, as RényiCL's
released code calls it, which makes `RandAugment` of 15 `AugmentOp`s (`_RAND_TRANSFORMS`, the ones
that do not increase with the level, as in timm 0.4.9), and `timm.data.random_erasing.RandomErasing`
with mode "pixel". Ours cuts sums of float32 to whole numbers where Pillow cuts doubles, so that one
value in a hundred may be another by one.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data.auto_augment import AugmentOp, rand_augment_transform
from timm.data.random_erasing import RandomErasing
from torch import Tensor

from contrastbench.domains.image.views import policies
from contrastbench.domains.image.views import randaugment as r
from contrastbench.domains.image.views import transforms as views
from contrastbench.domains.image.views.draws import draw_erased
from made_images import N, picture, rng, same_distribution

FILL = (0.485, 0.456, 0.406)
FILTERS = {False: Image.Resampling.BILINEAR, True: Image.Resampling.BICUBIC}
DIRECTED = {*r.MOVES}


def draws(name: str, levels: Tensor, sign: float = 1.0, cubic: bool = True) -> r.Draws:
    """One layer with the same operation for all images."""
    n = len(levels)
    operation = torch.full((1, n), r.OPERATION_NUMBERS[name])
    return r.Draws(operation, levels[None], torch.full((1, n), sign), torch.full((1, n), cubic))


def timms(image: Tensor, name: str, level: float, sign: float, cubic: bool) -> Tensor:
    """timm's operation on one picture; its random sign is negative above 0.5."""
    fill = tuple(round(255 * share) for share in FILL)
    hparams = {"img_mean": fill, "interpolation": FILTERS[cubic]}
    operation = AugmentOp(name, prob=1.0, magnitude=level, hparams=hparams)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", lambda: 0.75 if sign < 0 else 0.25)
        new = operation(Image.fromarray(image.permute(1, 2, 0).numpy()))
    return torch.from_numpy(np.array(new)).permute(2, 0, 1).float()


@pytest.mark.parametrize("shape", [(32, 32), (40, 28)])
@pytest.mark.parametrize(
    ("name", "sign", "cubic"),
    [
        (name, sign, cubic)
        for name in r.OPERATIONS
        for sign in ((1.0, -1.0) if name in DIRECTED else (1.0,))
        for cubic in ((False, True) if name in DIRECTED else (True,))
    ],
)
def test_the_same_level_gives_timms_image(
    name: str, sign: float, cubic: bool, shape: tuple[int, int]
) -> None:
    """Levels of 2.6 and more: with fewer Posterize keeps no bit, which today's Pillow refuses."""
    images = picture(*shape)
    levels = 2.6 + 7.4 * torch.rand(N, generator=rng(3))
    levels[3], levels[4] = 5.0, 10.0
    pairs = zip(images, levels.tolist(), strict=True)
    expected = [timms(x, name, m, sign, cubic) for x, m in pairs]
    ours = r.apply(images.float(), draws(name, levels, sign, cubic), FILL)
    difference = (ours - torch.stack(expected)).abs()
    assert torch.equal(ours, ours.round())
    assert difference.max() <= 1
    assert (difference > 0).float().mean() < 0.01
    changed = (ours - images.float()).abs().flatten(1).amax(1)
    assert (changed[5:] > 0).float().mean() > 0.5, "the operation does something"


def test_the_operations_and_their_rate_are_timms() -> None:
    transform = rand_augment_transform("rand-n2-m10-mstd0.5", {"img_mean": (124, 116, 104)})
    assert Counter(op.name for op in transform.ops) == Counter(r.OPERATIONS)
    assert (transform.num_layers, transform.choice_weights) == (2, None)
    for op in transform.ops:
        assert (op.prob, op.magnitude, op.magnitude_std) == (r.RATE, 10, r.DEVIATION)
        assert op.magnitude_max is None
        assert op.kwargs["resample"] == (FILTERS[False], FILTERS[True])


@contextmanager
def seeded() -> Iterator[None]:
    """Python's and NumPy's global random numbers, which timm draws from, put back behind it."""
    before = random.getstate(), np.random.get_state()
    random.seed(0)
    np.random.seed(0)
    yield
    random.setstate(before[0])
    np.random.set_state(before[1])


def test_draws_are_distributed_as_timms() -> None:
    """Which operation, how often one is applied, and the magnitudes after they are cut to 10."""
    n, m, seen = 3000, 10, []
    transform = rand_augment_transform(f"rand-n3-m{m}-mstd0.5", {"img_mean": (128, 128, 128)})
    for op in transform.ops:
        op.level_fn = lambda magnitude, hparams, name=op.name: (name, magnitude)
        op.aug_fn = lambda image, name, magnitude, **_: seen.append((name, magnitude))
    with seeded():
        for _ in range(n):
            transform(None)
    ours = r.draw_operations(3, 5 * n, float(m), rng(1))
    applied = ours.operation != r.NO_OPERATION
    names = torch.tensor([r.OPERATION_NUMBERS[name] for name, _ in seen]).float()
    same_distribution(ours.operation[applied].float()[:, None], names[:, None])
    levels = torch.tensor([magnitude for _, magnitude in seen])
    same_distribution(ours.level[applied][:, None], levels[:, None])
    assert ours.level.max() <= 10
    for share, size in ((len(seen) / (3 * n), 3 * n), (applied.float().mean().item(), 15 * n)):
        assert share == pytest.approx(0.5, abs=4.5 * math.sqrt(0.25 / size))
    for what in ((ours.sign > 0), ours.cubic, applied[0] == applied[1]):
        bound = 4.5 * math.sqrt(0.25 / what.numel())
        assert what.float().mean().item() == pytest.approx(0.5, abs=bound)


def test_each_image_has_its_own_operations_layer_by_layer() -> None:
    images, drawn = picture().float(), r.draw_operations(3, N, 5.0, rng(2))
    drawn.operation[0] = torch.arange(N) % (r.NO_OPERATION + 1)
    expected = []
    for row, image in enumerate(images):
        x = image[None]
        for layer in range(3):
            name = (*r.OPERATIONS, None)[drawn.operation[layer, row]]
            if name:
                one = drawn.level[layer, row : row + 1], drawn.sign[layer, row].item()
                x = r.apply(x.clone(), draws(name, *one, bool(drawn.cubic[layer, row])), FILL)
        expected.append(x[0])
    assert (r.apply(images.clone(), drawn, FILL) - torch.stack(expected)).abs().max() <= 1


def test_many_images_are_resampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    images, drawn = picture().float(), r.draw_operations(1, N, 10.0, rng(6))
    whole = r.apply(images.clone(), drawn, FILL)
    monkeypatch.setattr(r, "TAPS", 16 * 32 * 32)
    difference = (r.apply(images.clone(), drawn, FILL) - whole).abs()
    assert difference.max() <= 1, "another order of operations may round otherwise"
    assert (difference > 0).float().mean() < 0.01


def erased_by_timm(n: int) -> tuple[Tensor, Tensor]:
    """(n, 4) top, left, height, width of its boxes on 32 pixels, and the values in them."""
    erasing, boxes, values = RandomErasing(1.0, mode="pixel", device="cpu"), [], []
    with seeded(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(n):
            image = erasing(torch.zeros(3, 32, 32))
            places = image[0].nonzero()
            first, last = places.amin(0), places.amax(0)
            boxes.append(torch.cat([first, last - first + 1]))
            values.append(image[:, *places.T].flatten())
    return torch.stack(boxes).float(), torch.cat(values)


def test_erased_boxes_and_their_noise_are_timms() -> None:
    boxes, values = erased_by_timm(1000)
    ours = draw_erased(10_000, policies.Policy(32, erasing=1.0), rng())
    same_distribution(ours[ours[:, 2] > 0], boxes)
    policy = policies.Policy(32, erasing=1.0)
    noise = views.erase_some(torch.zeros(500, 3, 32, 32), policy, rng(1))
    same_distribution(noise[noise != 0][:20_000, None], values[:20_000, None])
    share = (
        (draw_erased(20_000, policies.Policy(32, erasing=0.2), rng(1))[:, 2] > 0)
        .float()
        .mean()
        .item()
    )
    assert share == pytest.approx(0.2, abs=0.012)  # 4 standard deviations
