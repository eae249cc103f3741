"""Tiles of photographs: each photograph's in one part, and the same from folders and archive."""

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

from made_images import as_folder, declare, declared, refused
from raw_files import tarred

GREYS = {f"{kind}/{kind}_{k}.png": 60 * k + 9 * i for i, kind in enumerate("ab") for k in range(3)}


def squares(grey: int) -> bytes:
    """A photograph of three by three even squares, each a little lighter, and a margin."""
    pixels = np.zeros((12, 15), dtype=np.uint8)
    steps = grey + np.arange(9, dtype=np.uint8).reshape(3, 3)
    pixels[:, 1:13] = steps.repeat(4, axis=0).repeat(4, axis=1)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="png")
    return file.getvalue()


@pytest.fixture
def small_set(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "DTD-10", classes=("a", "b"), sizes=(2, 18, 18), content="")


def test_a_photographs_tiles_are_in_one_part(small_set: None, tmp_path: Path) -> None:
    files = {name: squares(grey) for name, grey in GREYS.items()}
    as_folder(tmp_path / "unpacked/dtd/images", files)
    images, digest = declared("DTD-10", tmp_path / "unpacked", 8)
    assert (images.classes, images.train.labels.tolist()) == (("a", "b"), [0] * 9 + [1] * 9)
    for part, number in ((images.train, 0), (images.test, 1)):
        expected = np.add.outer([60 * number, 60 * number + 9], range(9)).ravel()
        assert part.pixels.shape == (18, 3, 8, 8)
        assert part.pixels.float().mean(dim=(1, 2, 3)).tolist() == expected.tolist()
    (tmp_path / "packed").mkdir()
    packed = {f"dtd/images/{name}": content for name, content in files.items()}
    tarred("dtd-r1.0.1.tar.gz", packed)(tmp_path / "packed")
    assert declared("DTD-10", tmp_path / "packed", 8)[1] == digest


def test_other_photographs_are_refused(
    small_set: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_folder(tmp_path / "dtd/images", {name: squares(grey) for name, grey in GREYS.items()})
    declare(monkeypatch, "DTD-10", content="0" * 64)
    refused(lambda: declared("DTD-10", tmp_path, 8), "DTD-10 have other content")
