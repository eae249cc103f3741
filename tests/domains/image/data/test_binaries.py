"""STL-10 in its binary version."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from contrastbench.domains.image.data import binaries
from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.data.load import load_declared, load_images
from made_images import CPU, as_folder, noise


def test_stl_is_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = binaries.shaped_bytes
    monkeypatch.setattr(
        binaries,
        "shaped_bytes",
        lambda name, raw, shape: whole(
            name, raw[: int(np.prod(shape)) // 1000], (shape[0] // 1000, *shape[1:])
        ),
    )
    pixels = {
        "train": noise(5, 3, 96, 96),
        "test": noise(8, 3, 96, 96, seed=1),
        "unlabeled": noise(100, 3, 96, 96, seed=2),
    }
    files = {f"stl10_binary/{part}_X.bin": x.swapaxes(2, 3).tobytes() for part, x in pixels.items()}
    files["stl10_binary/train_y.bin"] = bytes([1, 10, 3, 4, 5])
    files["stl10_binary/test_y.bin"] = bytes([2] * 8)
    files["stl10_binary/class_names.txt"] = b"airplane\nbird\n"
    as_folder(tmp_path, files)
    load_declared.cache_clear()
    images, _ = load_images("STL-10", 32, tmp_path, CPU)
    assert isinstance(images.unlabelled, Images)
    assert np.array_equal(images.train.batch(torch.arange(5)).numpy(), pixels["train"])
    assert np.array_equal(images.unlabelled.pixels.numpy(), pixels["unlabeled"])
    assert images.train.labels.tolist() == [0, 9, 2, 3, 4]
    assert images.unlabelled.labels.unique().tolist() == [-1]
