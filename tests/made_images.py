"""Small images and folders of them, and how a bad one is refused."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from contrastbench.domains.image.data import load
from contrastbench.domains.image.images import ImageSet
from contrastbench.losses import UserError

CPU = torch.device("cpu")


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


def read(root: Path, size: int = 16) -> ImageSet:
    return load(f"folder:{root}", size, None, CPU)[0]


def as_folder(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def jpeg(seed: int, side: int = 64) -> bytes:
    file = io.BytesIO()
    Image.fromarray(noise(side, side, 3, seed=seed)).save(file, "JPEG")
    return file.getvalue()


def refused(work: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        work()
    assert "\n" not in str(error.value)
