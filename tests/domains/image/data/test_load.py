"""Sets of images by name."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

pytest.importorskip("PIL")
from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.data.own import load_images
from made_images import CPU


def test_digits_are_scikit_learns_enlarged() -> None:
    images, sha256 = load_images("digits", 32, None, CPU)
    assert isinstance(images.train, Images)
    assert (len(images.train), len(images.test), len(images.classes), len(sha256)) == (
        1438,
        359,
        10,
        64,
    )
    assert images.train.pixels.shape[1:] == (3, 32, 32)
    original, _ = load_images("digits", 8, None, CPU)
    rows = {row.tobytes() for row in (load_digits().images * 255 / 16).round().astype(np.uint8)}
    for part in (original.train, original.test):
        assert {
            image[c].numpy().tobytes() for image in part.batch(torch.arange(50)) for c in range(3)
        } <= rows
    assert images.test.labels.bincount().min() >= 35, "stratified"
    assert load_images("digits", 8, None, CPU)[1] == sha256, (
        "the hash is that of the data, not of their size"
    )
