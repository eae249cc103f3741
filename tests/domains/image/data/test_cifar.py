"""CIFAR from archives, folders and recoded pictures, and STL-10: what is read and refused."""

import hashlib
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image.data import archives, binaries
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.images import Images
from made_images import as_folder, declare, declared, noise, unread
from raw_files import CIFAR_10, CIFAR_100, small, tarred, zipped


def test_an_archive_that_never_ends_is_one_line(
    small_cifar: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1_000_000)  # three of its members
    tarred("cifar-10-binary.tar.gz", CIFAR_10)(tmp_path)
    unread("it unpacks to more than", "CIFAR-10", tmp_path, 32)


@pytest.fixture
def small_cifar() -> Iterator[None]:
    """A hundredth of CIFAR's records, whatever they hold."""
    with small():
        yield


@pytest.mark.usefixtures("small_cifar")
@pytest.mark.parametrize("hundred", [False, True])
def test_cifar_is_read_from_its_binary_version(hundred: bool, tmp_path: Path) -> None:
    name, files = ("CIFAR-100" if hundred else "CIFAR-10"), (CIFAR_100 if hundred else CIFAR_10)
    tarred(f"{name.lower()}-binary.tar.gz", files)(tmp_path)
    images, sha256 = declared(name, tmp_path, 32)
    assert isinstance(images.train, Images)
    assert (len(images.train), len(images.test), images.unlabelled) == (500, 100, None)
    classes = 100 if hundred else 10
    assert images.train.labels.tolist() == [k * classes // 500 for k in range(500)]
    first = noise(500 if hundred else 100, 3072, seed=0 if hundred else 1)
    ours = {x.numpy().tobytes() for x in images.train.pixels[images.train.labels == 3]}
    assert {row.tobytes() for row in first[3::classes]} <= ours
    assert images.classes[:2] == (("w0", "w1") if hundred else ("plane", "car"))
    as_folder(tmp_path / "unpacked", files)
    assert declared(name, tmp_path / "unpacked", 32)[1] == sha256


def pictures(files: dict[str, bytes]) -> dict[str, bytes]:
    """CIFAR-10's records as PNG files, in another order."""
    found = {}
    for name, content in files.items():
        part = "test" if "test" in name else "train"
        whole = content[: len(content) // 3073 * 3073]  # no class names
        for k, row in enumerate(np.frombuffer(whole, np.uint8).reshape(-1, 3073)):
            file = io.BytesIO()
            Image.fromarray(row[1:].reshape(3, 32, 32).transpose(1, 2, 0)).save(file, "PNG")
            found[f"cifar10/{part}/{row[0]}/{zlib.crc32(row)}_{k}.png"] = file.getvalue()
    return found


@pytest.mark.usefixtures("small_cifar")
@pytest.mark.parametrize("name", ["CIFAR-10", "CIFAR-10-5k"])
def test_the_same_content_is_the_same_set_however_it_is_kept(name: str, tmp_path: Path) -> None:
    files = CIFAR_10
    as_folder(tmp_path / "binary", files)
    as_folder(tmp_path / "folder", pictures(files))
    (tmp_path / "zip").mkdir()
    zipped("cifar10.zip", pictures(files))(tmp_path / "zip")
    sets = [declared(name, tmp_path / kind, 32) for kind in ("binary", "folder", "zip")]
    assert len({sha256 for _, sha256 in sets}) == 1
    few = name == "CIFAR-10-5k"
    for images, _ in sets:
        assert images.train.labels.bincount().tolist() == [5 if few else 50] * 10
        assert images.test.labels.bincount().tolist() == [1 if few else 10] * 10
    assert all(torch.equal(images.train.pixels, sets[0][0].train.pixels) for images, _ in sets)


def test_the_order_is_that_of_the_classes_and_of_the_hashes_of_pixels() -> None:
    pixels, labels = torch.from_numpy(noise(20, 3, 2, 2)), torch.arange(20) % 3
    ordered, classes = binaries.canonical_order(pixels, labels)
    keys = [
        (int(label), hashlib.sha256(bytes(image.flatten().tolist())).hexdigest())
        for image, label in zip(ordered, classes, strict=True)
    ]
    assert keys == sorted(keys)
    assert sorted(map(str, ordered.tolist())) == sorted(map(str, pixels.tolist()))


def test_something_else_under_the_name_is_refused(tmp_path: Path) -> None:
    as_folder(tmp_path, pictures(CIFAR_10))
    unread("kept as CIFAR-10 have other content", "CIFAR-10", tmp_path, 32)


def test_fc100_has_twenty_classes() -> None:
    classes = DATASETS["FC100"].classes
    assert len(classes) == len(set(classes)) == 20


@pytest.mark.usefixtures("small_cifar")
def test_fc100_tests_all_images_of_other_classes_than_it_trains(tmp_path: Path) -> None:
    as_folder(tmp_path, CIFAR_100)
    images, _ = declared("FC100", tmp_path)
    assert images.test.labels.tolist() == [3] * 6 + [70] * 6
    assert images.train.labels.bincount().tolist() == [6 * (k not in (3, 70)) for k in range(100)]
    whole, _ = declared("CIFAR-100", tmp_path)
    rows = torch.cat([part.pixels[part.labels == 3] for part in (whole.train, whole.test)])
    found = {image.numpy().tobytes() for image in images.test.pixels[:6]}
    assert found == {image.numpy().tobytes() for image in rows}


def test_stl_is_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "STL-10", sizes=(10, 5, 8), unlabelled=100)
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
    images, _ = declared("STL-10", tmp_path, 32)
    assert isinstance(images.unlabelled, Images)
    assert np.array_equal(images.train.batch(torch.arange(5)).numpy(), pixels["train"])
    assert np.array_equal(images.unlabelled.pixels.numpy(), pixels["unlabeled"])
    assert images.train.labels.tolist() == [0, 9, 2, 3, 4]
    assert images.unlabelled.labels.unique().tolist() == [-1]
