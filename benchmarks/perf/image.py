"""Measure image training for `bench perf image`.

Views against torchvision's and timm's on one Pillow image after the other, a training step, and how
much of the decoding of files (`bench perf image folder:PATH`) is done while a step computes.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

import torch
from PIL import Image
from torch import Tensor
from torchvision import transforms

from contrastbench.benchmarks.perf.timing import CPU, run_seconds
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.data.images import CIFAR_MEAN, CIFAR_STD, ImageFiles
from contrastbench.domains.image.data.load import load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.views.policies import Policy, PolicyKind, policy
from contrastbench.domains.image.views.spatial import to_float
from contrastbench.domains.image.views.transforms import augment, erase_some, normalise
from contrastbench.domains.random import generator
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import both_views, get_loss

DEFAULT = ("digits",)
VIEW_KINDS: tuple[PolicyKind, ...] = ("none", "base", "hard")
WIDTHS = (0.25, 1.0)
BATCH, SIZE, ROUNDS, STEPS = 256, 32, 15, 3
DECODED, BATCHES = 64, 8  # images of a batch that is decoded, and such batches


def report(
    datasets: list[str], data_root: Path | None, device: torch.device = CPU
) -> Iterator[str]:
    """Markdown tables of views, of steps and, of image files, of decoding, a line at a time.

    Milliseconds, medians of alternating rounds, one thread; one image after the other on the CPU.
    """
    torch.set_num_threads(1)
    torch.empty(
        7 << 20
    )  # 28 MB: from then on, as in training, the C library keeps freed memory for the next batch
    rows = torch.arange(BATCH, device=device)
    yield f"| set | two views of {BATCH} images | ours | image by image | ratio |"
    yield "| --- | --- |" + " ---: |" * 3
    for name in datasets:
        images = load_images(name, SIZE, data_root, device)[0].train.batch(rows)
        for kind in VIEW_KINDS:
            ours, theirs = (1e3 * time for time in view_times(images, policy(kind, SIZE)))
            yield f"| {name} | {kind} | {ours:.1f} ms | {theirs:.0f} ms | {theirs / ours:.1f} |"
    yield ""
    yield (
        f"| set | network, {BATCH} images | float32 | float32, channels last | bf16, channels "
        "last | ratio | views |"
    )
    yield "| --- | --- |" + " ---: |" * 5
    for name in datasets:
        images = load_images(name, SIZE, data_root, device)[0].train.batch(rows)
        for width in WIDTHS:
            views, plain, last, half = (1e3 * time for time in step_times(images, width))
            times = f"{plain:.0f} ms | {last:.0f} ms | {half:.0f} ms"
            times += f" | {plain / half:.1f} | {views / (views + half):.1%}"
            yield f"| {name} | ResNet-18 x {width:g} | {times} |"
    for name in datasets:
        pictures = load_images(name, SIZE, data_root, device, whole=True)[0].train
        if isinstance(pictures, ImageFiles):
            yield from decoding_table(name, pictures)


def decoding_table(name: str, pictures: ImageFiles) -> Iterator[str]:
    """Lines on a set whose files are decoded at each step, with a step of the narrowest network."""
    yield ""
    yield f"| set | batches of {DECODED} | decoding | steps | in turns | ahead | ratio |"
    yield "| --- | --- |" + " ---: |" * 5
    parts = pictures.everything[: DECODED * BATCHES].split(DECODED)
    times = decoding_times(pictures, parts)
    told = " | ".join(f"{1e3 * time:.0f} ms" for time in times)
    _, _, in_turns, ahead = times
    yield f"| {name} | {len(parts)} | {told} | {in_turns / ahead:.2f} |"


def decoding_times(
    pictures: ImageFiles, parts: Sequence[Tensor]
) -> tuple[float, float, float, float]:
    """Seconds of decoding all parts, of their steps, of one after the other, of both at once."""
    loss, device = get_loss("infonce"), pictures.labels.device
    recipe = make_recipe("image", {"width": WIDTHS[0]})
    net, fixed = ImageModel(cast(ImageRecipe, recipe), 1).to(device), pictures.batch(parts[0])

    def step(images: Tensor) -> None:
        x = normalise(to_float(images), CIFAR_MEAN, CIFAR_STD)
        loss(both_views(net(x), net(x.flip(3)))).backward()

    def ahead() -> None:
        batch = pictures.ahead(parts)
        for number in range(len(parts)):
            step(batch(number).pixels)

    def in_turns() -> None:
        for part in parts:
            step(pictures.batch(part))

    def alone() -> None:
        for _ in parts:
            step(fixed)

    works: list[Callable[[], Any]] = [
        lambda: [pictures.batch(part) for part in parts],
        alone,
        in_turns,
        ahead,
    ]
    rounds = [[run_seconds(work, device) for work in works] for _ in range(STEPS + 1)][1:]
    decoding, steps, both, overlapped = (median(column) for column in zip(*rounds, strict=True))
    return decoding, steps, both, overlapped


def view_times(images: Tensor, policy: Policy) -> tuple[float, float]:
    """Seconds of two views of the images, whole batches at once and image by image."""
    rng, one_view = generator(images.device, 0), per_image(policy)
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images.cpu()]

    def view() -> Tensor:
        x = augment(images, policy, rng)
        return erase_some(x, policy, rng) if policy.erasing else x

    works: list[Callable[[], Any]] = [
        lambda: [view() for _ in range(2)],
        lambda: [torch.stack([one_view(picture) for picture in pictures]) for _ in range(2)],
    ]
    rounds = [[run_seconds(work, images.device) for work in works] for _ in range(ROUNDS + 1)][
        1:
    ]  # the first one warms up
    ours, theirs = (median(column) for column in zip(*rounds, strict=True))
    return ours, theirs


def step_times(images: Tensor, width: float) -> tuple[float, float, float, float]:
    """Seconds of two views of the images, and of a step on them.

    Float32, with channels last, in bfloat16 besides.
    """
    loss, rng = get_loss("infonce"), generator(images.device, 0)
    layouts = (
        ("float32", torch.contiguous_format),
        ("float32", torch.channels_last),
        ("bf16", torch.channels_last),
    )

    def views() -> list[Tensor]:
        return [
            normalise(augment(images, policy("base", SIZE), rng), CIFAR_MEAN, CIFAR_STD)
            for _ in range(2)
        ]

    def step(net: ImageModel, batch: list[Tensor]) -> None:
        loss(both_views(*[net(view) for view in batch])).backward()

    works: list[Callable[[], Any]] = [views]
    for precision, layout in layouts:
        net = ImageModel(
            cast(ImageRecipe, make_recipe("image", {"precision": precision, "width": width})), 1
        )
        batch = [view.contiguous(memory_format=layout) for view in views()]
        net = net.to(images.device).to(memory_format=layout)
        works.append(partial(step, net, batch))
    rounds = [[run_seconds(work, images.device) for work in works] for _ in range(STEPS + 1)][1:]
    making, plain, last, half = (median(column) for column in zip(*rounds, strict=True))
    return making, plain, last, half


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
