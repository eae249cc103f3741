"""Sets of image files: their hash, and the size they are stored in."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.data.own import load_images
from made_images import CPU, folder, noise, read, save


def digest(root: Path) -> str:
    return load_images(f"folder:{root}", 16, None, CPU)[1]


def test_the_hash_is_that_of_names_and_bytes(tmp_path: Path) -> None:
    first = digest(folder(tmp_path / "a"))
    assert digest(folder(tmp_path / "b")) == first
    assert load_images(f"folder:{tmp_path / 'a'}", 32, None, CPU)[1] == first, (
        "however they are stored"
    )
    save(tmp_path / "b/train/cat/0.png", noise(16, 16, 3, seed=77))
    changed = digest(tmp_path / "b")
    assert changed != first
    (tmp_path / "b/train/cat/0.png").rename(tmp_path / "b/train/dog/9.png")
    assert digest(tmp_path / "b") not in (first, changed)


def test_images_of_several_sizes_are_stored_in_one(tmp_path: Path) -> None:
    root = folder(tmp_path)
    save(root / "train/cat/0.png", noise(40, 60, 3))
    save(root / "train/cat/1.png", noise(10, 12, 3))
    images = read(root)
    assert isinstance(images.train, Images)
    assert images.train.pixels.shape == (6, 3, 16, 16)
    assert images.notes == {"enlarged to 16 x 16": 1, "reduced or cut to 16 x 16": 1}
    large = Image.open(root / "train/cat/0.png").resize((24, 16), Image.Resampling.BILINEAR)
    found = images.train.pixels[0].permute(1, 2, 0)
    assert np.array_equal(found.numpy(), np.asarray(large)[:, 4:20])


def test_large_images_of_one_size_are_reduced_and_small_ones_kept(tmp_path: Path) -> None:
    large = read(folder(tmp_path / "large", side=120), 64).train
    small = read(folder(tmp_path / "small", side=90), 64).train
    assert [part.batch(torch.tensor([0])).shape[-1] for part in (large, small)] == [64, 90]
