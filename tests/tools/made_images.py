"""Small images and folders of them, and how a bad one is refused."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.images import Images, ImageSet, LoadedImages, Request
from contrastbench.domains.image.data.own import ADAPTER, load_declared, load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import UserError

CPU = torch.device("cpu")
N = 24


def noise(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, array: Any, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)


def folder(
    root: Path, parts: tuple[str, ...] = ("train", "test"), count: int = 3, side: int = 16
) -> Path:
    """Two classes with some images each, all different."""
    for p, part in enumerate(parts):
        for c, name in enumerate(("cat", "dog")):
            for k in range(count):
                save(
                    root / part / name / f"{k}.png", noise(side, side, 3, seed=100 * p + 10 * c + k)
                )
    return root


def read(root: Path, size: int = 16, whole: bool = False) -> ImageSet:
    return ADAPTER.read(f"folder:{root}", None, Request(size, None, CPU, whole))[0]


def as_folder(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def jpeg(seed: int, side: int = 64) -> bytes:
    file = io.BytesIO()
    Image.fromarray(noise(side, side, 3, seed=seed)).save(file, "JPEG")
    return file.getvalue()


def refused(work: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        work()


def declare(patch: pytest.MonkeyPatch, name: str, **facts: Any) -> None:
    """Have a declared set be another by some facts, such as a small one."""
    patch.setitem(DATASETS, name, replace(DATASETS[name], **facts))


def declared(name: str, root: Path | None, size: int = 16) -> LoadedImages:
    load_declared.cache_clear()
    return load_images(name, size, root, CPU)


def unread(message: str, name: str, root: Path | None, size: int = 16) -> None:
    refused(lambda: declared(name, root, size), message)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def picture(height: int = 32, width: int = 32, n: int = N, seed: int = 0) -> Tensor:
    """(n, 3, height, width) uint8: smooth colours with noise; a grey, a black, a white one."""
    small = torch.rand(n, 3, 5, 5, generator=rng(seed))
    smooth = torch.nn.functional.interpolate(small, (height, width), mode="bilinear")
    images = ((smooth + 0.2 * torch.rand(smooth.shape, generator=rng(seed + 1))) * 215).byte()
    images[0, 1:] = images[0, :1]
    images[1], images[2] = 0, 255
    return images


def floats() -> Tensor:
    return picture().float() / 255


def same_distribution(one: Tensor, two: Tensor) -> None:
    """Means within 4.5 standard errors, distribution functions within 2.2 of their scale."""
    error = (one.var(dim=0) / len(one) + two.var(dim=0) / len(two)).sqrt()
    assert bool(((one.mean(dim=0) - two.mean(dim=0)).abs() < 4.5 * error).all())
    for a, b in zip(one.T.contiguous(), two.T.contiguous(), strict=True):
        points = torch.cat([a, b]).unique()
        below = [torch.searchsorted(x.sort().values, points, right=True) / len(x) for x in (a, b)]
        assert (below[0] - below[1]).abs().max() < 2.2 * math.sqrt(1 / len(a) + 1 / len(b))


def grey_levels(n: int = 40, classes: int = 4) -> Images:
    labels = torch.arange(n) % classes
    noise = torch.randint(0, 40, (n, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    return Images((noise + 50 * labels.view(-1, 1, 1, 1)).to(torch.uint8), labels)


def small_model() -> ImageModel:
    torch.manual_seed(0)
    values = {"width": 0.0625, "projection": (8, 6), "size": 8, "precision": "float32"}
    return ImageModel(make_recipe("image", values), 1)
