"""Anybody's folders of images: what is read, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from contrastbench.domains import own
from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.views.policies import Policy
from contrastbench.domains.own import read_unchanged
from made_images import CPU, folder, noise, read, refused, save


def test_a_folder_is_its_images(tmp_path: Path) -> None:
    images = read(folder(tmp_path))
    assert isinstance(images.train, Images)
    assert (images.classes, images.notes) == (("cat", "dog"), {})
    assert images.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    for part, row, seed in ((images.train, 4, 11), (images.test, 5, 112)):
        found = part.batch(torch.tensor([row]))[0].permute(1, 2, 0)
        assert np.array_equal(found.numpy(), noise(16, 16, 3, seed=seed))


def test_val_is_the_test_part_where_there_is_no_test(tmp_path: Path) -> None:
    assert len(read(folder(tmp_path, ("train", "val"))).test) == 6


def test_a_folder_without_parts_is_split_the_same_way_every_time(tmp_path: Path) -> None:
    images = read(folder(tmp_path, (".",), count=10))
    parts = images.train, images.test
    assert [part.labels.bincount().tolist() for part in parts] == [[8, 8], [2, 2]]
    pixels = torch.cat([part.batch(torch.arange(len(part))) for part in parts])
    assert len(pixels.flatten(1).unique(dim=0)) == 20
    read_unchanged.cache_clear()
    assert torch.equal(read(tmp_path).test.batch(torch.arange(4)), pixels[16:])


def test_the_folder_may_be_in_the_data_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "root" / "mine")
    monkeypatch.chdir(tmp_path)
    assert len(load_images("folder:mine", 16, tmp_path / "root", CPU)[0].train) == 6
    assert len(load_images("folder:root/mine", 16, None, CPU)[0].train) == 6
    refused(lambda: load_images("folder:mine", 16, None, CPU), "no folder mine here: --data-root")
    refused(lambda: load_images("folder:mine", 16, tmp_path, CPU), "no folder mine here, nor in")


def test_other_files_are_counted(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "train/cat/labels.txt").write_text("x")
    (root / "train/.hidden").write_text("x")
    assert read(root).notes == {"files left out, no images of a class": 1}


@pytest.mark.parametrize("names", [("Training", "Testing"), ("TRAIN", "Valid"), ("Train", "dev")])
def test_folders_of_parts_as_people_name_them(names: tuple[str, str], tmp_path: Path) -> None:
    expected = read(folder(tmp_path / "plain"))
    root = folder(tmp_path / "named")
    for plain, name in zip(("train", "test"), names, strict=True):
        (root / plain).rename(root / name)
    found = read(root)
    assert (found.classes, found.drawn) == (expected.classes, False)
    assert [*found.notes.values()] == ([] if names[1] == "Testing" else [names[1]])
    assert found.test.batch(torch.arange(6)).equal(expected.test.batch(torch.arange(6)))


def test_val_beside_test_is_counted(tmp_path: Path) -> None:
    images = read(folder(tmp_path, ("train", "test", "val")))
    assert images.notes == {"files left out, in val": 6}


def test_linked_class_folders_are_read_and_counted(tmp_path: Path) -> None:
    elsewhere, root = folder(tmp_path / "elsewhere"), tmp_path / "mine"
    (elsewhere / "train/cat/labels.txt").write_text("x")
    save(elsewhere / "train/dog/more/9.png", noise(16, 16, 3, seed=99))
    for part in ("train", "test"):
        (root / part).mkdir(parents=True)
        for name in ("cat", "dog"):
            (root / part / name).symlink_to(elsewhere / part / name)
    (elsewhere / "train/cat/linked").symlink_to(elsewhere / "train/dog/more")
    images = read(root)
    assert len(images.train) == 3 + 3 + 2, "a linked folder in a class folder is read too"
    assert images.notes == {"files left out, no images of a class": 1}
    hashes = {load_images(f"folder:{path}", 16, None, CPU)[1] for path in (root, elsewhere)}
    assert len(hashes) == 1
    state = own.source_state(str(root), None)
    save(elsewhere / "test/cat/9.png", noise(16, 16, 3))
    assert own.source_state(str(root), None) != state, "and is read again when it changes"


def test_test_images_that_are_trained_on_are_counted(tmp_path: Path) -> None:
    root = folder(tmp_path, ("train",))
    (root / "test").symlink_to(root / "train")
    save(root / "train/cat/9.png", noise(16, 16, 3))
    assert read(root).notes == {"test images that are training images too": 7}


def test_the_real_subset_of_cifar(shared: Callable[..., Path]) -> None:
    root = shared("data", "cifar10-subset").parent
    images, sha256 = load_images("folder:cifar10-subset", 32, root, CPU)
    assert [len(part) for part in (images.train, images.test)] == [5085, 1017]
    assert (len(images.classes), images.notes) == (10, {})
    assert sha256.startswith("530b6131910cd7f0")


def test_a_broken_picture_that_stays_a_file_is_named_when_it_is_used(tmp_path: Path) -> None:
    """Pictures of which crops are cut are decoded in the first epoch."""
    path = folder(tmp_path, count=6, side=120) / "train/cat/1.png"
    path.write_bytes(path.read_bytes()[:2000])
    images = read(tmp_path, whole=True)
    refused(
        lambda: list(images.train.crops([(Policy(16), 1)], torch.Generator())),
        "train/cat/1.png is damaged .*: remove or replace it",
    )


@pytest.mark.parametrize("suffix", [".jfif", ".JPE"])
def test_other_endings_of_jpeg_files_are_read(suffix: str, tmp_path: Path) -> None:
    root = folder(tmp_path)
    for path in list(root.rglob("*.png")):
        Image.open(path).convert("RGB").save(path.with_suffix(suffix), "jpeg")
        path.unlink()
    assert len(read(root).train) == 6
