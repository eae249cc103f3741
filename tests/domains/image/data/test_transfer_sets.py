"""Sets that encoders are transferred to: what torchvision's readers find, and how it is scored."""

import json
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import torch
from scipy.io import savemat

from contrastbench.domains.image.data import transfer_sets
from contrastbench.domains.image.data.datasets import DATASETS, scoring
from contrastbench.domains.image.networks.exports import export
from contrastbench.domains.image.preprocessing import Preprocessing
from contrastbench.domains.image.scoring import protocols
from contrastbench.domains.registry import make_recipe
from made_images import CPU, as_folder, declare, declared, jpeg, refused, unread
from opened import opened

KINDS = ("crow", "wren")
NAMES = {
    part: [f"{kind}/{part}{k}" for kind in KINDS for k in range(3)] for part in ("train", "test")
}
SMALL = {"validation": 0.4, "size": 16, "width": 0.0625, "projection": (8, 4)}
SMALL |= {"epochs": 1, "batch_size": 4}


def pictures(folder: Path, names: list[str]) -> None:
    as_folder(folder, {f"{name}.jpg": jpeg(crc32(name.encode()), 20) for name in names})


def text(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]))


def food(root: Path) -> None:
    for part, names in NAMES.items():
        pictures(root / "food-101/images", names)
        by_kind = {kind: [name for name in names if kind in name] for kind in KINDS}
        text(root / f"food-101/meta/{part}.json", json.dumps(by_kind))


def sun(root: Path) -> None:
    folder = root / "SUN397"
    text(folder / "ClassName.txt", "/c/crow", "/w/wren/of day")
    for part, name in (("train", "Training"), ("test", "Testing")):
        places = {"crow": "c/crow", "wren": "w/wren/of day"}
        files = [f"{places[n[:4]]}/sun_{n[5:]}" for n in NAMES[part]]
        pictures(folder, files)
        text(folder / f"{name}_01.txt", *(f"/{file}.jpg" for file in files))


def records(files: list[str], labels: list[int]) -> np.ndarray:
    rows = list(zip(files, labels, strict=True))
    return np.array(rows, dtype=[("fname", object), ("class", object)])


def cars(root: Path) -> None:
    folder = root / "stanford_cars"
    (folder / "devkit").mkdir(parents=True)
    savemat(folder / "devkit/cars_meta.mat", {"class_names": np.array(KINDS, dtype=object)})
    lists = {"train": "devkit/cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
    for part, names in NAMES.items():
        files = [name.replace("/", "_") for name in names]
        pictures(folder / f"cars_{part}", files)
        rows = records([f"{file}.jpg" for file in files], [1, 1, 1, 2, 2, 2])
        savemat(folder / lists[part], {"annotations": rows})


def aircraft(root: Path) -> None:
    folder = root / "fgvc-aircraft-2013b/data"
    text(folder / "variants.txt", *KINDS)
    for part, names in three_parts().items():
        files = [name.replace("/", "_") for name in names]
        pictures(folder / "images", files)
        text(folder / f"images_variant_{part}.txt", *(f"{f} {f[:4]}" for f in files))


def three_parts() -> dict[str, list[str]]:
    """The last two training images of each class validate."""
    train = [name for name in NAMES["train"] if name.endswith("0")]
    return {
        "train": train,
        "val": [name for name in NAMES["train"] if name not in train],
        "test": NAMES["test"],
    }


def dtd(root: Path) -> None:
    for part, names in three_parts().items():
        pictures(root / "dtd/dtd/images", names)
        text(root / f"dtd/dtd/labels/{part}1.txt", *(f"{name}.jpg" for name in names))


def pets(root: Path) -> None:
    folder = root / "oxford-iiit-pet"
    for part, name in (("train", "trainval"), ("test", "test")):
        files = [file.replace("/", "_") for file in NAMES[part]]
        pictures(folder / "images", files)
        rows = (f"{file} {1 + KINDS.index(file[:4])} 1 1" for file in files)
        text(folder / f"annotations/{name}.txt", *rows)


def caltech(root: Path) -> None:
    names = [
        f"{kind}/image_{k:04d}" for kind in (*KINDS, "BACKGROUND_Google") for k in range(1, 34)
    ]
    pictures(root / "caltech101/101_ObjectCategories", names)


def flowers(root: Path) -> None:
    folder = root / "flowers-102"
    pictures(folder / "jpg", [f"image_{k:05d}" for k in range(1, 13)])
    labels = [1, 2] * 6
    folder.mkdir(exist_ok=True)
    savemat(folder / "imagelabels.mat", {"labels": labels})
    ids = {"trnid": [1, 2], "valid": [3, 5, 4, 6], "tstid": [7, 9, 11, 8, 10, 12]}
    savemat(folder / "setid.mat", ids)


def voc(root: Path) -> None:
    folder = root / "VOCdevkit/VOC2007"
    for part, names in three_parts().items():
        files = [name.replace("/", "_") for name in names]
        pictures(folder / "JPEGImages", files)
        lists = folder / "ImageSets/Main"
        text(lists / f"{part}.txt", *files)
        for kind in KINDS:
            for name in (part, "trainval"):
                rows = (f"{file} {' 1' if kind in file else '-1'}" for file in files)
                text(lists / f"{kind}_{name}.txt", *rows)
    test = lists / "wren_test.txt"
    test.write_text(test.read_text().replace("crow_test0 -1", "crow_test0  0"))


MADE: dict[str, Callable[[Path], None]] = {
    **{"Food-101": food, "SUN397": sun, "Stanford-Cars": cars, "FGVC-Aircraft": aircraft},
    **{"DTD": dtd, "Oxford-Pets": pets, "Caltech-101": caltech, "Flowers-102": flowers},
    "VOC2007": voc,
}
OWN_VALIDATION = ("FGVC-Aircraft", "DTD", "Flowers-102", "VOC2007")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of a few images by the names of the large ones; torchvision knows some by their MD5."""
    sizes = {**dict.fromkeys(MADE, (2, 6, 6)), "Caltech-101": (2, 60, 6)}
    sizes["Flowers-102"] = (102, 6, 6)  # its reader knows their names
    for name, counts in sizes.items():
        declare(monkeypatch, name, sizes=counts)
    flowers = transfer_sets.datasets.Flowers102
    monkeypatch.setattr(flowers, "_check_integrity", lambda self: True)


def test_each_set_is_made_here_and_declared() -> None:
    of_transfer = {k for k, v in DATASETS.items() if v.reader == "transfer_sets:load_transfer"}
    assert set(MADE) == of_transfer


@pytest.mark.parametrize("name", MADE)
def test_parts_and_classes_are_those_of_the_set(name: str, tmp_path: Path) -> None:
    MADE[name](tmp_path / "here")
    images, digest = declared(name, tmp_path / "here")
    several = torch.tensor([[1, -1], [-1, 1]])
    y = [torch.tensor([0, 1]), several][name == "VOC2007"]
    if name == "Caltech-101":
        assert images.train.labels.bincount().tolist() == [30, 30]
        assert images.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    else:
        order = [0, 1, 0, 0, 1, 1] if name in OWN_VALIDATION else [0, 0, 0, 1, 1, 1]
        expected = y[[0, 0, 0, 1, 1, 1]]
        if name == "VOC2007":
            expected[0, 1] = 0  # hard to say
        assert torch.equal(images.train.labels, y[order])
        assert torch.equal(images.test.labels, expected)
    assert images.validation == (4 if name in OWN_VALIDATION else 0)
    pixels = torch.cat([images.train.pixels, images.test.pixels]).flatten(1)
    assert len(pixels.unique(dim=0)) == len(pixels), "no image is in two parts"
    MADE[name](tmp_path / "there")
    assert declared(name, tmp_path / "there")[1] == digest


def test_another_class_is_another_content(tmp_path: Path) -> None:
    """The classes stand in lists, not in the names of files."""
    aircraft(tmp_path)
    digest = declared("FGVC-Aircraft", tmp_path)[1]
    lists = tmp_path / "fgvc-aircraft-2013b/data/images_variant_val.txt"
    lists.write_text(lists.read_text().replace("train1 crow", "train1 wren"))
    assert declared("FGVC-Aircraft", tmp_path)[1] != digest


@pytest.mark.parametrize("name", ["Food-101", "VOC2007"])
def test_what_is_not_there_is_one_line_with_file_address_and_place(name: str, tmp_path) -> None:
    about = DATASETS[name]
    message = (
        f"{name} has no known hash and is not downloaded: get {about.url}, "
        f"put {about.file} into a folder"
    )
    unread(message, name, tmp_path)
    (tmp_path / about.file).mkdir()
    unread(message, name, tmp_path)
    (tmp_path / about.file / "half").touch()
    unread(f"{about.file} .*get {about.url} again", name, tmp_path)


def encoder(folder: Path) -> str:
    d = opened("image", "digits", **SMALL)
    export(d.model(), d.recipe, Preprocessing((0.5,) * 3, (0.5,) * 3, 16), folder)
    return str(folder)


def test_validation_images_are_the_authors_or_drawn(tmp_path: Path) -> None:
    for name, sizes in (("DTD", [2, 4]), ("Caltech-101", [50, 10])):
        MADE[name](tmp_path)
        images, _ = declared(name, tmp_path)
        share = scoring(name).share
        found = protocols.fitting_parts(images, share, 0)
        assert [len(part) for part in found] == sizes
        assert found[1].labels.bincount().tolist() == [sizes[1] // 2] * 2
        if images.validation:
            assert torch.equal(found[1].pixels, images.train.pixels[2:])


def test_an_encoder_is_transferred_to_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrastbench.domains.scoring.logistic.TRANSFER_GRID", (0.01, 1.0))
    folder = encoder(tmp_path / "encoder")
    for name, metrics in (
        ("Oxford-Pets", {"accuracy", "per_class_accuracy", "C"}),
        ("VOC2007", {"mean_average_precision", "C"}),
    ):
        MADE[name](tmp_path)
        found = protocols.score(folder, name, "transfer", 0, tmp_path, CPU)
        assert set(found) == metrics
    for work in (
        lambda: protocols.score(folder, "VOC2007", "knn", 0, tmp_path, CPU),
        lambda: opened("image", "VOC2007", tmp_path, **SMALL),
    ):
        refused(work, "images of VOC2007 have several classes: .*transfer")


def test_c_is_chosen_by_the_metric_of_the_set(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    seen = []
    place = "contrastbench.domains.scoring.logistic.transfer_accuracies"
    monkeypatch.setattr(place, lambda *parts: seen.append(parts[-1]) or {})
    folder = encoder(tmp_path / "encoder")
    for name in ("Stanford-Cars", "Oxford-Pets"):
        MADE[name](tmp_path)
        protocols.score(folder, name, "transfer", 0, tmp_path, CPU)
    assert seen == ["accuracy", "per_class_accuracy"]


def test_one_training_is_scored_on_further_sets(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("contrastbench.domains.scoring.logistic.TRANSFER_GRID", (0.01, 1.0))
    dtd(tmp_path)
    plain = opened("image", "DTD", tmp_path, **SMALL)
    entries = ["transfer:DTD", "retrieval", "knn:digits"]
    d = opened("image", "DTD", tmp_path, **SMALL, score_on=entries)
    own, both = plain.evaluate(plain.model()), d.evaluate(d.model())
    assert {k: v for k, v in both.metrics.items() if k in own.metrics} == own.metrics
    added = set(both.metrics) - set(own.metrics)
    assert {name.partition(".")[0] for name in added} == set(entries)
    assert "transfer:DTD.accuracy" in added
    assert both.main == own.main
    export(plain.model(), plain.recipe, plain.preprocessing, tmp_path / "encoder")
    again = protocols.score(str(tmp_path / "encoder"), "DTD", "retrieval", 0, tmp_path, CPU)
    assert {k.partition(".")[2]: both.metrics[k] for k in added if "retrieval" in k} == again
    assert d.data_hash(True) != plain.data_hash(True)


def test_further_sets_are_fetched_or_named(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-binary.tar.gz").touch()
    entries = ["knn", "transfer:DTD", "knn:CIFAR-10", "few-shot:folder:mine"]
    found = make_recipe("image", {"score_on": entries}).fetch("digits", tmp_path, True)
    assert found.pop("DTD").startswith(
        "MISSING DTD has no known hash and is not downloaded: get https://www.rob"
    )
    assert found == {
        "CIFAR-10": str(tmp_path / "cifar-10-binary.tar.gz"),
        "folder:mine": "your own, take it along",
    }
