"""Measure image training for `bench perf image`.

Views against torchvision's and timm's on one Pillow image after the other, and a training step.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from PIL import Image
from torch import Tensor
from torchvision import transforms

from contrastbench.benchmarks.perf.timing import CPU, medians, table_head
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.data.images import CIFAR_MEAN, CIFAR_STD
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.views.policies import Policy, PolicyKind, policy
from contrastbench.domains.image.views.transforms import augment, erase_some, normalise
from contrastbench.domains.random import generator
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import both_views, get_loss

DEFAULT = ("digits",)
VIEW_KINDS: tuple[PolicyKind, ...] = ("none", "base", "hard")
BATCH, SIZE, ROUNDS, STEPS = 256, 32, 5, 3
WIDTHS = {BATCH: (0.25, 1.0), 64: (0.25,)}  # of networks, by the images of a step


def report(datasets: list[str], root: Path | None, device: torch.device = CPU) -> Iterator[str]:
    """Markdown tables of views and of steps, a line at a time.

    Milliseconds, medians of alternating rounds, one thread; one image after the other on the CPU.
    """
    torch.set_num_threads(1)
    # 28 MB: from then on, as in training, the C library keeps freed memory for the next batch
    torch.empty(7 << 20)
    rows = torch.arange(BATCH, device=device)
    yield table_head(f"set | two views of {BATCH} images | ours | image by image | ratio", 2)
    for name in datasets:
        images = load_images(name, SIZE, root, device)[0].train.batch(rows)
        for kind in VIEW_KINDS:
            ours, theirs = (1e3 * time for time in view_times(images, policy(kind, SIZE)))
            yield f"| {name} | {kind} | {ours:.1f} ms | {theirs:.0f} ms | {theirs / ours:.1f} |"
    yield ""
    # a CPU without products in bf16 takes minutes for the large step
    batch = min(WIDTHS) if device.type == "cpu" else max(WIDTHS)
    times = "float32 | float32, channels last | bf16, channels last | ratio | views"
    yield table_head(f"set | network, {batch} images | {times}", 2)
    for name in datasets:
        images = load_images(name, SIZE, root, device)[0].train.batch(rows[:batch])
        for width in WIDTHS[batch]:
            views, plain, last, half = (1e3 * time for time in step_times(images, width))
            times = f"{plain:.0f} ms | {last:.0f} ms | {half:.0f} ms"
            times += f" | {plain / half:.1f} | {views / (views + half):.1%}"
            yield f"| {name} | ResNet-18 x {width:g} | {times} |"


def view_times(images: Tensor, policy: Policy) -> list[float]:
    """Seconds of two views of the images, whole batches at once and image by image."""
    rng, one_view = generator(images.device, 0), per_image(policy)
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images.cpu()]

    def view() -> Tensor:
        x = augment(images, policy, rng)
        return erase_some(x, policy, rng) if policy.erasing else x

    def one_by_one() -> Tensor:
        return torch.stack([one_view(picture) for picture in pictures])

    works = (lambda one=one: [one() for _ in range(2)] for one in (view, one_by_one))
    return medians([*works], ROUNDS, images.device)


def step_times(images: Tensor, width: float) -> list[float]:
    """Seconds of two views, and of a step in float32, with channels last, and in bfloat16 too."""
    loss, rng = get_loss("infonce"), generator(images.device, 0)
    kind, first, last = policy("base", SIZE), torch.contiguous_format, torch.channels_last

    def views() -> list[Tensor]:
        made = (augment(images, kind, rng) for _ in range(2))
        return [normalise(view, CIFAR_MEAN, CIFAR_STD) for view in made]

    def step(net: ImageModel, batch: list[Tensor]) -> None:
        loss(both_views(*[net(view) for view in batch])).backward()

    works: list[Callable[[], Any]] = [views]
    for precision, layout in (("float32", first), ("float32", last), ("bf16", last)):
        recipe = make_recipe("image", {"precision": precision, "width": width})
        net = ImageModel(cast(ImageRecipe, recipe), 1).to(images.device).to(memory_format=layout)
        batch = [view.contiguous(memory_format=layout) for view in views()]
        works.append(partial(step, net, batch))
    return medians(works, STEPS, images.device)


def per_image(policy: Policy) -> Callable[[Image.Image], Tensor]:
    """Return the same view made by torchvision's transforms and timm's RandAugment."""
    jitter = transforms.ColorJitter(*policy.strength)
    steps = [
        transforms.RandomResizedCrop(policy.size, policy.scale, policy.ratio),
        transforms.RandomHorizontalFlip(policy.flip),
        *([transforms.RandomApply([jitter], policy.jitter)] if policy.jitter else []),
        *([timms(*policy.randaugment)] if policy.randaugment else []),
        *([transforms.RandomGrayscale(policy.grey)] if policy.grey else []),
        transforms.ToTensor(),
        *([transforms.RandomErasing(policy.erasing, value="random")] if policy.erasing else []),
    ]
    return transforms.Compose(steps)


def timms(n: int, magnitude: float) -> Callable[[Image.Image], Image.Image]:
    """Timm's RandAugment of one Pillow image."""
    auto_augment = importlib.import_module("timm.data.auto_augment")
    return auto_augment.rand_augment_transform(f"rand-n{n}-m{magnitude:g}-mstd0.5")
