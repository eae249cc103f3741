"""Tiny-ImageNet and ImageNet-100: what is read, and what is refused."""

import hashlib
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image.data.datasets import IMAGENET_100
from contrastbench.domains.image.data.images import IMAGENET_MEAN
from made_images import as_folder, declare, declared, jpeg, refused, unread
from raw_files import zipped

PUBLISHED = "79f3f1552ccc478ce24bd934b4573625db584ddc1f4643ae23c994a94cb11397"  # of imagenet100.txt


def tiny_files() -> dict[str, bytes]:
    files = {
        "wnids.txt": b"n2\nn1\n",
        "val/val_annotations.txt": b"v0.JPEG\tn1\t0\t0\t9\t9\nv1.JPEG\tn2\t0\t0\t9\t9\n",
    }
    files |= {f"train/{c}/images/{c}_{k}.JPEG": jpeg(k) for c in ("n1", "n2") for k in range(2)}
    files |= {f"train/{c}/{c}_boxes.txt": b"" for c in ("n1", "n2")}
    files |= {f"val/images/v{k}.JPEG": jpeg(9 + k) for k in range(2)} | {
        "test/images/t.JPEG": jpeg(20)
    }
    return {f"tiny-imagenet-200/{name}": content for name, content in files.items()}


def test_tiny_imagenet_is_read_in_its_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "Tiny-ImageNet", sizes=(2, 4, 2))
    zipped("tiny-imagenet-200.zip", tiny_files())(tmp_path)
    images, sha256 = declared("Tiny-ImageNet", tmp_path, 64)
    assert images.classes == ("n1", "n2")
    assert (images.train.labels.tolist(), images.test.labels.tolist()) == ([0, 0, 1, 1], [0, 1])
    expected = np.asarray(Image.open(io.BytesIO(jpeg(10)))).transpose(2, 0, 1)
    assert np.array_equal(images.test.batch(torch.tensor([1]))[0].numpy(), expected)
    as_folder(tmp_path / "unpacked", tiny_files())
    assert declared("Tiny-ImageNet", tmp_path / "unpacked", 64)[1] == sha256
    (tmp_path / "unpacked/tiny-imagenet-200/train/n1/images/n1_0.JPEG").unlink()
    unread(
        "200 has 2 classes, 3 training and 2 test images, Tiny-ImageNet 2 classes, 4 training",
        "Tiny-ImageNet",
        tmp_path / "unpacked",
        64,
    )
    (tmp_path / "unpacked/tiny-imagenet-200/val/val_annotations.txt").write_text("v0.JPEG\tn3\n")
    unread("unknown class 'n3'", "Tiny-ImageNet", tmp_path / "unpacked", 64)
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(b"PK")
    unread("zip is damaged .*: delete it and download http", "Tiny-ImageNet", tmp_path, 64)


def test_every_tenth_class_trains_and_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, "Tiny-ImageNet-20", sizes=(2, 4, 4), content="")
    kinds = [f"n{k:02}" for k in range(12)]
    pictures = {
        f"train/{c}/images/{c}_{k}.JPEG": jpeg(9 * int(c[1:]) + k) for c in kinds for k in range(5)
    }
    words = {"wnids.txt": "\n".join(kinds).encode(), "val/val_annotations.txt": b"v.JPEG\tn01\n"}
    as_folder(tmp_path, {f"tiny-imagenet-200/{k}": v for k, v in (pictures | words).items()})
    images, _ = declared("Tiny-ImageNet-20", tmp_path, 32)
    assert images.classes == ("n00", "n10")
    assert images.train.labels.tolist() == images.test.labels.tolist() == [0, 0, 1, 1]
    last = Image.open(io.BytesIO(jpeg(93))).resize((32, 32), Image.Resampling.BILINEAR)
    assert np.array_equal(images.test.pixels[3].permute(1, 2, 0).numpy(), np.asarray(last))
    declare(monkeypatch, "Tiny-ImageNet-20", content="0" * 64)
    unread("have other content", "Tiny-ImageNet-20", tmp_path, 32)


def test_imagenet_100_is_the_published_list_from_imagenets_folders(tmp_path: Path) -> None:
    listed = "".join(f"{name}\n" for name in IMAGENET_100).encode()
    assert hashlib.sha256(listed).hexdigest() == PUBLISHED
    assert len(set(IMAGENET_100)) == 100
    unread("no data root is given: get ImageNet from", "ImageNet-100", None, 224)
    for place in ("train", "val"):
        for name in (*IMAGENET_100, "n00000000"):
            as_folder(tmp_path / "imagenet" / place / name, {"x.JPEG": jpeg(0, 20)})
    images, _ = declared("ImageNet-100", tmp_path)
    assert images.classes == tuple(sorted(IMAGENET_100))
    assert images.train.labels.tolist() == list(range(100))
    assert images.mean == IMAGENET_MEAN
    shutil.rmtree(tmp_path / "imagenet/val" / IMAGENET_100[7])
    unread(f"val has no folder {IMAGENET_100[7]}, one of", "ImageNet-100", tmp_path)


def test_imagenet_has_all_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (*IMAGENET_100[:2], "n00000000")
    for place in ("train", "val"):
        for name in names:
            as_folder(tmp_path / "imagenet" / place / name, {"x.JPEG": jpeg(0, 20)})
    unread("has 3 classes, 3 training .* ImageNet 1000 classes", "ImageNet", tmp_path)
    declare(monkeypatch, "ImageNet", sizes=(3, 3, 3))
    images, _ = declared("ImageNet", tmp_path)
    assert (images.classes, images.mean) == (tuple(sorted(names)), IMAGENET_MEAN)
    (tmp_path / "imagenet").rename(tmp_path / "imagenet-100")
    refused(lambda: declared("ImageNet", tmp_path), "has no imagenet/train/")
