"""`bench perf image`: two views of a batch, ours against torchvision's on one Pillow image after the other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torchvision import transforms

from contrastbench.benchmarks.timing import seconds
from contrastbench.domains.image.data import load
from contrastbench.domains.image.views import Kind, Policy, augment, policy

DEFAULT = ("digits",)
KINDS: tuple[Kind, ...] = ("none", "base", "hard")
BATCH, SIZE, ROUNDS = 256, 32, 15


def report(datasets: list[str], data_root: Path | None) -> Iterator[str]:
    """A Markdown table, a line at a time: milliseconds, medians of alternating rounds, one thread."""
    torch.set_num_threads(1)
    torch.empty(7 << 20)  # 28 MB: from then on, as in training, the C library keeps freed memory for the next batch
    yield f"| set | two views of {BATCH} images | ours | image by image | ratio |"
    yield "| --- | --- |" + " ---: |" * 3
    for name in datasets:
        images = load(name, SIZE, data_root, torch.device("cpu"))[0].train.batch(torch.arange(BATCH))
        for kind in KINDS:
            ours, theirs = (1e3 * time for time in view_times(images, policy(kind, SIZE)))
            yield f"| {name} | {kind} | {ours:.1f} ms | {theirs:.0f} ms | {theirs / ours:.1f} |"


def view_times(images: Tensor, policy: Policy) -> tuple[float, float]:
    """Seconds of two views of the images, whole batches at once and image by image."""
    rng, one_view = torch.Generator().manual_seed(0), per_image(policy)
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
    works: list[Callable[[], Any]] = [
        lambda: [augment(images, policy, rng) for _ in range(2)],
        lambda: [torch.stack([one_view(picture) for picture in pictures]) for _ in range(2)],
    ]
    rounds = [[seconds(work) for work in works] for _ in range(ROUNDS + 1)][1:]  # the first one warms up
    ours, theirs = (median(column) for column in zip(*rounds, strict=True))
    return ours, theirs


def per_image(policy: Policy) -> Callable[[Image.Image], Tensor]:
    """The same view by torchvision's transforms of Pillow images."""
    n, magnitude = policy.randaugment
    jitter = transforms.ColorJitter(*policy.strength)
    steps = [
        transforms.RandomResizedCrop(policy.size, policy.scale, policy.ratio),
        transforms.RandomHorizontalFlip(policy.flip),
        *([transforms.RandAugment(n, int(magnitude), num_magnitude_bins=11)] if n else []),
        *([transforms.RandomApply([jitter], policy.jitter)] if policy.jitter else []),
        *([transforms.RandomGrayscale(policy.grey)] if policy.grey else []),
        transforms.ToTensor(),
        *([transforms.RandomErasing(policy.erasing, value="random")] if policy.erasing else []),
    ]
    return transforms.Compose(steps)
