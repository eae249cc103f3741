"""Tiny-ImageNet and ImageNet-100: what is read, and what is refused."""

import hashlib
import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image.data.datasets import DATASETS, IMAGENET_100
from contrastbench.domains.image.data.images import IMAGENET_MEAN
from contrastbench.domains.image.data.load import load_declared, load_images
from made_images import CPU, as_folder, jpeg, refused

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
    monkeypatch.setitem(
        DATASETS, "Tiny-ImageNet", replace(DATASETS["Tiny-ImageNet"], sizes=(2, 4, 2))
    )
    with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as archive:
        for name, content in tiny_files().items():
            archive.writestr(name, content)
    images, sha256 = load_images("Tiny-ImageNet", 64, tmp_path, CPU)
    assert (images.classes, images.train.labels.tolist(), images.test.labels.tolist()) == (
        ("n1", "n2"),
        [0, 0, 1, 1],
        [0, 1],
    )
    expected = np.asarray(Image.open(io.BytesIO(jpeg(10)))).transpose(2, 0, 1)
    assert np.array_equal(images.test.batch(torch.tensor([1]))[0].numpy(), expected)
    as_folder(tmp_path / "unpacked", tiny_files())
    assert load_images("Tiny-ImageNet", 64, tmp_path / "unpacked", CPU)[1] == sha256
    (tmp_path / "unpacked/tiny-imagenet-200/train/n1/images/n1_0.JPEG").unlink()
    load_declared.cache_clear()
    refused(
        lambda: load_images("Tiny-ImageNet", 64, tmp_path / "unpacked", CPU),
        "200 has 2 classes, 3 training and 2 test images, Tiny-ImageNet 2 classes, 4 training",
    )
    (tmp_path / "unpacked/tiny-imagenet-200/val/val_annotations.txt").write_text("v0.JPEG\tn3\n")
    load_declared.cache_clear()
    refused(
        lambda: load_images("Tiny-ImageNet", 64, tmp_path / "unpacked", CPU), "unknown class 'n3'"
    )
    load_declared.cache_clear()
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(b"PK")
    refused(
        lambda: load_images("Tiny-ImageNet", 64, tmp_path, CPU),
        "zip is damaged .*: delete it and download http",
    )


def test_every_tenth_class_trains_and_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(DATASETS["Tiny-ImageNet-20"], sizes=(2, 4, 4), content="")
    monkeypatch.setitem(DATASETS, "Tiny-ImageNet-20", known)
    kinds = [f"n{k:02}" for k in range(12)]
    pictures = {
        f"train/{c}/images/{c}_{k}.JPEG": jpeg(9 * int(c[1:]) + k) for c in kinds for k in range(5)
    }
    words = {"wnids.txt": "\n".join(kinds).encode(), "val/val_annotations.txt": b"v.JPEG\tn01\n"}
    as_folder(tmp_path, {f"tiny-imagenet-200/{k}": v for k, v in (pictures | words).items()})
    images, _ = load_images("Tiny-ImageNet-20", 32, tmp_path, CPU)
    assert images.classes == ("n00", "n10")
    assert images.train.labels.tolist() == images.test.labels.tolist() == [0, 0, 1, 1]
    last = Image.open(io.BytesIO(jpeg(93))).resize((32, 32), Image.Resampling.BILINEAR)
    assert np.array_equal(images.test.pixels[3].permute(1, 2, 0).numpy(), np.asarray(last))
    known = replace(known, content="0" * 64)
    monkeypatch.setitem(DATASETS, "Tiny-ImageNet-20", known)
    load_declared.cache_clear()
    refused(lambda: load_images("Tiny-ImageNet-20", 32, tmp_path, CPU), "have other content")


def test_imagenet_100_is_the_published_list_from_imagenets_folders(tmp_path: Path) -> None:
    assert (
        hashlib.sha256("".join(f"{name}\n" for name in IMAGENET_100).encode()).hexdigest()
        == PUBLISHED
    )
    assert len(set(IMAGENET_100)) == 100
    refused(
        lambda: load_images("ImageNet-100", 224, None, CPU),
        "no data root is given: get ImageNet from",
    )
    for place in ("train", "val"):
        for name in (*IMAGENET_100, "n00000000"):
            as_folder(tmp_path / "imagenet" / place / name, {"x.JPEG": jpeg(0, 20)})
    images, _ = load_images("ImageNet-100", 16, tmp_path, CPU)
    assert images.classes == tuple(sorted(IMAGENET_100))
    assert images.train.labels.tolist() == list(range(100))
    assert images.mean == IMAGENET_MEAN
    shutil.rmtree(tmp_path / "imagenet/val" / IMAGENET_100[7])
    load_declared.cache_clear()
    refused(
        lambda: load_images("ImageNet-100", 16, tmp_path, CPU),
        f"val has no folder {IMAGENET_100[7]}, one of",
    )


def test_imagenet_has_all_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (*IMAGENET_100[:2], "n00000000")
    for place in ("train", "val"):
        for name in names:
            as_folder(tmp_path / "imagenet" / place / name, {"x.JPEG": jpeg(0, 20)})
    refused(
        lambda: load_images("ImageNet", 16, tmp_path, CPU),
        "has 3 classes, 3 training .* ImageNet 1000 classes",
    )
    monkeypatch.setitem(DATASETS, "ImageNet", replace(DATASETS["ImageNet"], sizes=(3, 3, 3)))
    images, _ = load_images("ImageNet", 16, tmp_path, CPU)
    assert (images.classes, images.mean) == (tuple(sorted(names)), IMAGENET_MEAN)
    (tmp_path / "imagenet").rename(tmp_path / "imagenet-100")
    load_declared.cache_clear()
    refused(lambda: load_images("ImageNet", 16, tmp_path, CPU), "has no imagenet/train/")
