"""Sets of metric learning: what is read, what is refused, and what trains and scores on them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import raw_files
from contrastbench.domains.base import PairsByClass
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.images import IMAGENET_MEAN
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.domains.random import balanced, generator
from contrastbench.domains.registry import known_data, make_recipe
from contrastbench.losses import get_loss
from made_images import CPU, as_folder, declare, declared, refused, unread
from opened import opened

METRIC = {
    **{"preset": "metric", "size": 16, "encoder": "resnet18", "width": 0.0625, "epochs": 1},
    **{"batch_size": 8, "positives": 3, "projection": (6,)},
}
SIZES = (4, 12, 10)  # classes, images of the first two, and of the others


COUNTS = (6, 6, 5, 5)


def files() -> dict[str, bytes]:
    return raw_files.four_classes(*COUNTS)


def omniglot(root: Path, *_: int) -> None:
    for name, data in files().items():
        part = "background" if int(name[:3]) < 3 else "evaluation"
        as_folder(root / "omniglot" / f"images_{part}" / "Greek", {name: data})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, about in DATASETS.items():
        if about.reader == "published:load_disjoint":
            declare(monkeypatch, name, sizes=SIZES, content="")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *(("CUB", raw_files.cub), ("CAR", raw_files.car), ("SOP", raw_files.sop)),
        ("Omniglot", omniglot),
    ],
)
def test_halves_of_the_classes_train_and_are_tested(name: str, make, tmp_path: Path) -> None:
    make(tmp_path, *COUNTS)
    images, _ = declared(name, tmp_path)
    assert images.train.labels.tolist() == [0] * 6 + [1] * 6
    assert images.test.labels.tolist() == [2] * 5 + [3] * 5
    assert images.mean == IMAGENET_MEAN
    first = declared("CUB", tmp_path)[0] if name == "CUB" else images
    assert torch.equal(images.train.pixels, first.train.pixels)


def test_a_declaration_is_all_that_another_set_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {"name": "Mine", "file": "mine", "places": ("mine",), "sizes": SIZES}
    about = replace(DATASETS["CUB"], **mine)
    monkeypatch.setitem(DATASETS, "Mine", about)
    as_folder(tmp_path / "mine", files())
    images, _ = declared("Mine", tmp_path)
    assert (len(images.classes), len(images.train), len(images.test)) == SIZES
    assert make_recipe("image", {"score_on": ["retrieval:Mine"]})
    assert known_data()["Mine"] is about


def test_a_zip_is_its_folder(tmp_path: Path) -> None:
    as_folder(tmp_path / "cars196", files())
    _, unpacked = declared("Cars196", tmp_path)
    packed = {f"cars196/{name}": content for name, content in files().items()}
    raw_files.zipped("cars196.zip", packed)(tmp_path)
    assert declared("Cars196", tmp_path)[1] == unpacked


def test_what_is_not_there_or_something_else_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread(
        r"SOP has no known hash and is not downloaded: get https://cvgl.*, "
        r"put Stanford_Online_Products into",
        "SOP",
        tmp_path,
    )
    as_folder(tmp_path / "cars196", dict(list(files().items())[:-1]))
    unread(
        "cars196 has 4 classes, 12 training and 9 test images, Cars196 4 classes, .* 10 test",
        "Cars196",
        tmp_path,
    )
    as_folder(tmp_path / "cars196", files())
    declare(monkeypatch, "Cars196", content="0" * 64)
    unread("kept as Cars196 in .* have other content", "Cars196", tmp_path)
    (tmp_path / "Stanford_Online_Products").mkdir()
    (tmp_path / "Stanford_Online_Products" / "half").touch()
    unread("cannot read .*Ebay_train.txt", "SOP", tmp_path)


def test_a_balanced_batch_has_as_many_images_of_each_class_in_turns() -> None:
    labels = torch.tensor([5] * 9 + [2] * 7 + [7] * 2 + [0] * 4)
    seen = set()
    for seed in range(20):
        rows = balanced(labels, 3, 4, generator(CPU, seed))
        kinds = labels[rows].view(4, 3)
        assert (kinds == kinds[0]).all(), "they take turns: neighbours are of other classes"
        assert len(kinds[0].unique()) == 3
        times = Counter(rows.tolist())
        assert all(times[k] == 2 for k in times if labels[k] == 7), "both images of it, twice"
        assert all(times[k] == 1 for k in times if labels[k] != 7)
        seen |= set(rows.tolist())
    assert seen == set(range(22))


def domain(root: Path, **recipe: object) -> ImageDomain:
    return opened("image", "CUB", root, **{**METRIC, **recipe})


def test_contrasts_are_of_one_view_and_the_scored_is_the_embedding(tmp_path: Path) -> None:
    raw_files.cub(tmp_path, *COUNTS)
    d = domain(tmp_path)
    assert isinstance(d, PairsByClass)
    assert (d.class_count, d.dim, d.steps()) == (2, 6, 1)
    model = d.model()
    (contrast,) = d.contrasts(model, next(iter(d.batches(0))))
    assert contrast.anchor.shape == (8, 6)
    assert contrast.anchor_id.bincount().tolist() == [4, 4]
    assert d.embeddings(model).x.shape == (10, 6)
    evaluation = d.evaluate(model)
    assert evaluation.main == "recall_at_1"
    assert evaluation.samples == {"train": 12, "test": 10}
    loss = get_loss("proxy_anchor + 0.5*dar")
    loss.prepare(d.class_count, d.dim)
    loss(contrast).backward()
    assert model.projector[-1].weight.grad.any()


def test_nothing_is_said_of_what_is_known_of_a_declared_set(tmp_path: Path) -> None:
    raw_files.cub(tmp_path, *COUNTS)
    opened = domain(tmp_path, **DATASETS["CUB"].scored_by, size=8)
    opened.image_notes = {"grey, in all three colours": 22}
    assert opened.report(trained=False).lines("CUB") == []
    assert opened.report(trained=False).lines("CUB", always=True)[0].startswith("CUB: 22 images")


def test_a_validation_part_of_the_training_classes_may_choose(tmp_path: Path) -> None:
    raw_files.cub(tmp_path, *COUNTS)
    evaluation = (d := domain(tmp_path, validation=0.3)).evaluate(d.model())
    assert evaluation.samples == {"train": 8, "validation": 4, "test": 10}
    assert evaluation.validation == evaluation.details["validation_scores"]["recall_at_1"]


def test_what_does_not_fit_is_one_line(tmp_path: Path) -> None:
    raw_files.cub(tmp_path, *COUNTS)
    for recipe, message in (
        ({"positives": 1}, "8 images, 2 of each class, are of 4 classes, and 2 to 2 are there"),
        ({"batch_size": 4}, "4 images, 4 of each class, are of 1 classes"),
        ({"batch_size": 10}, "batch_size=10 is no multiple of the 4 images of a class"),
        ({"positives": 0}, "pairing=balanced needs other images of each class: positives=3"),
        ({"probe": "lbfgs"}, "CUB tests other classes than it trains, .* preset=metric"),
    ):
        refused(lambda recipe=recipe: domain(tmp_path, **recipe), message)


def test_images_of_other_classes_are_other_data(tmp_path: Path) -> None:
    """Where a list says the classes, no file's name or content does."""
    raw_files.sop(tmp_path, *COUNTS)
    _, digest = declared("SOP", tmp_path)
    listed = tmp_path / "Stanford_Online_Products/Ebay_train.txt"
    exchanged = {" 1 1 001": " 2 1 001", " 2 1 002": " 1 1 002"}
    lines = listed.read_text().splitlines()
    for k, (old, new) in zip((1, -1), exchanged.items(), strict=True):
        assert old in lines[k]
        lines[k] = lines[k].replace(old, new)
    listed.write_text("\n".join(lines))
    assert declared("SOP", tmp_path)[1] != digest
