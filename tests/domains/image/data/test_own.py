"""Images that users bring: arrays, and the format of the `datasets` library."""

from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from PIL import Image, features

import made_images
from contrastbench.domains.image.data import own
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.images import ImageSet
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.own import read_unchanged
from made_images import refused
from opened import opened

COLOUR = made_images.noise(20, 16, 16, 3)
LABELS = np.arange(20) % 2 + 5


def npz(path: Path, **arrays: np.ndarray) -> str:
    np.savez_compressed(path, **arrays)
    read_unchanged.cache_clear()
    return f"npz:{path}"


def read(name: str, root: Path | None = None) -> tuple[ImageSet, str]:
    return load_images(name, 16, root, made_images.CPU)


def test_arrays_with_a_test_part(tmp_path: Path) -> None:
    test = {"test_images": COLOUR[:6], "test_labels": LABELS[:6, None].astype(np.uint8)}
    name = npz(tmp_path / "a.npz", images=COLOUR, labels=LABELS, **test)
    images, digest = read(name)
    assert (len(images.train), len(images.test), images.classes) == (20, 6, ("5", "6"))
    assert images.train.labels.tolist() == [0, 1] * 10
    assert np.array_equal(images.train.pixels.numpy().transpose(0, 2, 3, 1), COLOUR)
    assert np.array_equal(images.test.pixels.numpy().transpose(0, 2, 3, 1), COLOUR[:6])
    first = COLOUR.transpose(0, 3, 1, 2)
    test["test_images"] = first[:6]
    assert read(npz(tmp_path / "b.npz", images=first, labels=LABELS, **test))[1] == digest


def test_arrays_without_one_are_divided_and_grey_has_three_colours(tmp_path: Path) -> None:
    words = np.array(["cat", "dog"])[LABELS - 5]
    name = npz(tmp_path / "a.npz", images=COLOUR[..., 0], labels=words.astype("S"))
    images, _ = read(name)
    assert (len(images.train), len(images.test), images.classes) == (16, 4, ("cat", "dog"))
    assert sorted(images.test.labels.tolist()) == [0, 0, 1, 1]
    assert images.train.pixels.shape == (16, 3, 16, 16)
    assert (images.train.pixels == images.train.pixels[:, :1]).all()


@pytest.mark.parametrize("name", [name for name, known in DATASETS.items() if known.shipped])
def test_a_shipped_set_is_what_is_declared(name: str) -> None:
    images, digest = read(name)
    known = DATASETS[name]
    assert (len(images.classes), len(images.train), len(images.test)) == known.sizes
    assert digest == known.content
    rows = {part: {*map(bytes, getattr(images, part).pixels.numpy())} for part in ("train", "test")}
    assert not rows["train"] & rows["test"], "no test picture is a training picture"


BAD = {
    "floats": ({"images": COLOUR / 255.0}, "images is float64 of shape .*: give uint8"),
    "flat": ({"images": COLOUR.reshape(20, -1)}, "images is uint8 of shape"),
    "two colours": ({"images": COLOUR[..., :2]}, "1 or 3 colours"),
    "few labels": ({"labels": LABELS[:9]}, "its labels are "),
    "float labels": ({"labels": LABELS / 2}, "its labels are "),
    "holes in labels": ({"labels": np.where(LABELS == 5, np.nan, 6)}, "its labels are float64"),
    "Latin-1": ({"labels": np.full(20, b"\xfc")}, r"a\.npz cannot be read .'utf-8' codec"),
    "objects": (
        {"labels": LABELS.astype(object)},
        r"labels holds Python objects: save it as \.astype\(str\)",
    ),
    "no labels": ({"labels": None}, "has no array labels: it holds images"),
    "no names": ({"images": None, "arr_0": COLOUR}, "holds .*arr_0: give them names, as in numpy"),
    "half a test part": ({"test_images": COLOUR}, "has no array test_labels"),
    "new class": ({"test_images": COLOUR, "test_labels": LABELS + 9}, "class 14 has no training"),
    "other size": (
        {"test_images": COLOUR[:, :12], "test_labels": LABELS},
        "training and test images have different sizes",
    ),
    "two names": ({"train_images": COLOUR}, "has images and train_images: keep one of them"),
    "one class": ({"labels": LABELS * 0}, "has a single class"),
    "lonely class": ({"labels": np.arange(20) // 19}, "class 1 has one image"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_one_line(case: str, tmp_path: Path) -> None:
    changes, message = BAD[case]
    arrays = {"images": COLOUR, "labels": LABELS, **changes}
    name = npz(tmp_path / "a.npz", **{k: v for k, v in arrays.items() if v is not None})
    refused(lambda: read(name), message)


def test_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = npz(tmp_path / "a.npz", images=np.zeros((20, 64, 64), np.uint8), labels=LABELS)
    monkeypatch.setattr(own, "UNPACKED", 50_000)
    refused(lambda: read(name), r"images\.npy in .*a\.npz unpacks to more than")


@pytest.mark.parametrize(
    "names",
    [
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("x_train", "y_train", "x_test", "y_test"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("images_train", "labels_train", "images_test", "labels_test"),
        ("data", "targets", "test_data", "test_targets"),
    ],
)
def test_arrays_may_have_the_names_that_others_give(names: tuple[str, ...], tmp_path: Path) -> None:
    kept = dict(zip(("images", "labels", "test_images", "test_labels"), arrays(), strict=True))
    expected = read(npz(tmp_path / "a.npz", **kept))
    named = dict(zip(names, kept.values(), strict=True))
    found, digest = read(npz(tmp_path / "b.npz", **named, valid_x=np.zeros(3)))
    assert digest == expected[1]
    assert found.notes == {"arrays left out": ["valid_x"]}


def arrays() -> tuple[np.ndarray, ...]:
    pixels = np.random.default_rng(3).integers(0, 256, (30, 9, 9), dtype=np.uint8)
    labels = (np.arange(30) % 2)[:, None]
    return pixels[:20], labels[:20], pixels[20:], labels[20:]


def test_a_file_of_medmnist_chooses_by_its_own_part(tmp_path: Path) -> None:
    pixels, labels, *tested = arrays()
    names = ("train_images", "train_labels", "val_images", "val_labels")
    kept = dict(zip(names, (pixels[:14], labels[:14], pixels[14:], labels[14:]), strict=True))
    kept |= dict(zip(("test_images", "test_labels"), tested, strict=True))
    name = npz(tmp_path / "a.npz", **kept)
    for seed in (0, 1):
        made = opened("image", name, seed=seed, size=8)
        assert made.counts == {"train": 14, "validation": 6, "test": 10}
        seen = made.splits["validation"].pixels[:, 0].numpy()
        assert sorted(map(bytes, seen)) == sorted(map(bytes, pixels[14:]))
    whole = opened("image", name, size=8, validation=0)
    assert whole.counts == {"train": 20, "test": 10}


def test_equal_and_empty_images_are_counted(tmp_path: Path) -> None:
    pixels, labels, _, _ = arrays()
    pixels[4] = 7
    tested = np.concatenate([pixels[:3], pixels[3:5] // 2])
    name = npz(tmp_path / "a.npz", x_train=pixels, y_train=labels, x_test=tested, y_test=[0] * 5)
    made = opened("image", name, size=8, validation=0.0).report(trained=False)
    assert made.twins
    assert (made.twins.trained_on, made.twins.conflicts) == (3, 2)
    (flat,) = made.doubts.values()
    assert (flat, flat.first[:6]) == (2, "image ")
    assert made.features == {"height": 9, "width": 9}
    assert made.wrong


def test_pictures_of_the_datasets_library_are_those_of_a_folder(tmp_path: Path) -> None:
    root = made_images.folder(tmp_path / "folder", ("train", "val", "test"))
    names = ("ox", "cat", "dog")
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=[*names])}

    def split(part: str) -> object:
        paths = sorted((root / part).rglob("*.png"))
        rows = {
            "image": [{"bytes": path.read_bytes(), "path": None} for path in paths],
            "label": [names.index(path.parent.name) for path in paths],
        }
        return datasets.Dataset.from_dict(rows, features=datasets.Features(kinds))

    parts = {"train": split("train"), "validation": split("val"), "test": split("test")}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "mine")
    (found, digest), (expected, _) = read("hf:mine", tmp_path), read(f"folder:{root}")
    assert found.classes == ("cat", "dog"), "a class without a picture is none"
    assert found.notes == {"pictures left out, of the split validation": 6}
    for one, other in ((found.train, expected.train), (found.test, expected.test)):
        assert torch.equal(one.pixels, other.pixels)
        assert torch.equal(one.labels, other.labels)
    parts["train"].save_to_disk(tmp_path / "one")
    single = read("hf:one", tmp_path)
    assert (single[0].drawn, len(single[0].test), single[1] != digest) == (True, 2, True)
    parts["train"].remove_columns("label").save_to_disk(tmp_path / "bare")
    refused(lambda: read("hf:bare", tmp_path), "hf:bare has the columns image: give one of pict")
    elsewhere = [{"bytes": b"", "path": None}] * 4
    features = datasets.Features(kinds)
    rows = {"image": elsewhere, "label": [1, 2] * 2}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "away")
    refused(lambda: read("hf:away", tmp_path), "hf:away holds no bytes of picture /0: save it")


@pytest.mark.parametrize(
    ("change", "near"),
    [
        (lambda x: x, 6),
        (lambda x: x[:, :, ::-1], 6),  # mirrored
        (lambda x: np.clip(x.astype(int) + made_images.noise(*x.shape) % 3, 0, 255), 6),
        (lambda x: x.mean(3, keepdims=True).repeat(3, 3), 6),  # nearly grey as Pillow makes it
        (lambda x: x[:, ::-1], 0),
        (lambda x: x[[1, 0, 3, 2, 5, 4]] // 2 + x // 2, 0),
    ],
)
def test_nearly_equal_images_are_counted(change: Callable, near: int, tmp_path: Path) -> None:
    coarse = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 1))
    images = coarse.repeat(4, 1).repeat(4, 2).repeat(3, 3).astype(np.uint8)
    test = {"test_images": change(images[:6]).astype(np.uint8), "test_labels": LABELS[:6]}
    name = npz(tmp_path / "a.npz", images=images, labels=LABELS, **test)
    domain = opened("image", name, size=16, validation=0)
    assert domain.report(trained=False).near.trained_on == near


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow reads no AVIF")
def test_pictures_of_avif_are_read(tmp_path: Path) -> None:
    for k in range(20):
        (tmp_path / "ab"[k % 2]).mkdir(exist_ok=True)
        Image.fromarray(COLOUR[k]).save(tmp_path / "ab"[k % 2] / f"{k}.avif")
    assert len(read(f"folder:{tmp_path}")[0].train) == 16
