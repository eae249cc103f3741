"""Decoded images in the cache: read once, never trusted unless they are whole."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from contrastbench.domains import download
from contrastbench.domains.image.data import kept
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.images import ImageSet, Request
from made_images import CPU, grey_levels

pytestmark = pytest.mark.usefixtures("offline")
ABOUT = ImageDataset("greys", "levels of grey", content="c" * 64, file="greys.zip")
DIGEST = "d" * 64  # of a part of what is declared
IMAGES = ImageSet(grey_levels(40), grey_levels(8), None, ("a", "b"), notes={"grey": 48})


class Reader:
    """Reads the images, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, *_: object) -> tuple[ImageSet, str]:
        self.times += 1
        return IMAGES, DIGEST


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "greys.zip").write_bytes(b"a file of images")
    return tmp_path


def kept_file() -> Path:
    (path,) = (download.cache_folder() / "decoded").iterdir()
    return path


def test_a_set_is_decoded_once(root: Path) -> None:
    read = Reader()
    for _ in range(3):
        images, digest = kept.kept(ABOUT, Request(8, root, CPU), read)
        assert digest == DIGEST
        assert torch.equal(images.train.pixels, IMAGES.train.pixels)
        assert torch.equal(images.test.labels, IMAGES.test.labels)
        assert replace(images, train=IMAGES.train, test=IMAGES.test) == IMAGES
    assert read.times == 1


@pytest.mark.parametrize("place", [20, -1], ids=["in the header", "in the pixels"])
def test_a_damaged_file_is_decoded_again(root: Path, place: int) -> None:
    read = Reader()
    kept.kept(ABOUT, Request(8, root, CPU), read)
    data = bytearray(kept_file().read_bytes())
    data[place] ^= 1
    kept_file().write_bytes(data)
    for _ in range(2):
        images, _ = kept.kept(ABOUT, Request(8, root, CPU), read)
        assert torch.equal(images.train.pixels, IMAGES.train.pixels)
        assert read.times == 2


def test_files_that_changed_are_read_again(root: Path) -> None:
    read = Reader()
    kept.kept(ABOUT, Request(8, root, CPU), read)
    (root / "greys.zip").write_bytes(b"other images")
    kept.kept(ABOUT, Request(8, root, CPU), read)
    kept.kept(ABOUT, Request(16, root, CPU), read)
    assert read.times == 3


def test_sets_without_a_declared_content_and_full_disks_are_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reader()
    kept.kept(replace(ABOUT, content=""), Request(8, root, CPU), read)
    assert not download.cache_folder().exists()
    monkeypatch.setattr(download, "cache_folder", lambda: root / "greys.zip")
    assert kept.kept(ABOUT, Request(8, root, CPU), read)[0] is IMAGES
    assert read.times == 2
