"""Published sets: what is read, and what is refused."""

import hashlib
import io
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from contrastbench.domains.image.data import archives, published
from contrastbench.domains.image.data.datasets import IMAGENET_100
from contrastbench.domains.image.data.images import IMAGENET_MEAN, Images
from contrastbench.domains.image.data.own import load_images
from made_images import CPU, as_folder, declare, declared, jpeg, noise, refused, unread
from raw_files import CIFAR_10, CIFAR_100, STL, TINY, small, tarred, under, zipped


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
    ordered, classes = published.canonical_order(pixels, labels)
    keys = [
        (int(label), hashlib.sha256(bytes(image.flatten().tolist())).hexdigest())
        for image, label in zip(ordered, classes, strict=True)
    ]
    assert keys == sorted(keys)
    assert sorted(map(str, ordered.tolist())) == sorted(map(str, pixels.tolist()))


def test_something_else_under_the_name_is_refused(tmp_path: Path) -> None:
    as_folder(tmp_path, pictures(CIFAR_10))
    unread("kept as CIFAR-10 have other content", "CIFAR-10", tmp_path, 32)


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


@pytest.mark.usefixtures("small_cifar")
def test_stl_is_read_column_by_column(tmp_path: Path) -> None:
    as_folder(tmp_path, STL)
    images, _ = declared("STL-10", tmp_path, 32)
    assert isinstance(images.unlabelled, Images)
    train, unlabelled = (noise(n, 3, 96, 96, seed=n).swapaxes(2, 3) for n in (5, 2))
    assert np.array_equal(images.train.batch(torch.arange(5)).numpy(), train)
    assert np.array_equal(images.unlabelled.pixels.numpy(), unlabelled)
    assert images.train.labels.tolist() == [0, 9, 2, 3, 4]
    assert images.unlabelled.labels.unique().tolist() == [-1]


UNREAD = {"train/crow/crow_boxes.txt": b"", "test/images/t.JPEG": jpeg(20)}
TINY_IMAGENET = TINY | under("tiny-imagenet-200", UNREAD)
PUBLISHED = "79f3f1552ccc478ce24bd934b4573625db584ddc1f4643ae23c994a94cb11397"  # of imagenet100.txt


@pytest.mark.usefixtures("small_cifar")
def test_tiny_imagenet_is_read_in_its_zip(tmp_path: Path) -> None:
    zipped("tiny-imagenet-200.zip", TINY_IMAGENET)(tmp_path)
    images, sha256 = declared("Tiny-ImageNet", tmp_path)
    assert images.classes == ("crow", "wren")
    assert (images.train.labels.tolist(), images.test.labels.tolist()) == ([0, 1], [0, 1])
    expected = np.asarray(Image.open(io.BytesIO(jpeg(6, 16)))).transpose(2, 0, 1)
    assert np.array_equal(images.test.batch(torch.tensor([1]))[0].numpy(), expected)
    folder = tmp_path / "unpacked/tiny-imagenet-200"
    as_folder(folder.parent, TINY_IMAGENET)
    assert declared("Tiny-ImageNet", folder.parent)[1] == sha256
    (folder / "train/crow/images/crow.JPEG").unlink()
    fault = "200 has 2 classes, 1 training and 2 test images, Tiny-ImageNet 2 classes, 2 training"
    unread(fault, "Tiny-ImageNet", folder.parent)
    (folder / "val/val_annotations.txt").write_text("0.JPEG\tn3\n")
    unread("unknown class 'n3'", "Tiny-ImageNet", folder.parent)
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(b"PK")
    unread("zip is damaged .*: delete it and download http", "Tiny-ImageNet", tmp_path)


def test_every_tenth_class_trains_and_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, "Tiny-ImageNet-20", sizes=(2, 4, 4), content="")
    kinds = [f"n{k:02}" for k in range(12)]
    pictures = {
        f"train/{c}/images/{c}_{k}.JPEG": jpeg(9 * int(c[1:]) + k) for c in kinds for k in range(5)
    }
    words = {"wnids.txt": "\n".join(kinds).encode(), "val/val_annotations.txt": b"v.JPEG\tn01\n"}
    as_folder(tmp_path, under("tiny-imagenet-200", pictures | words))
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


GREYS = {f"{kind}/{kind}_{k}.png": 60 * k + 9 * i for i, kind in enumerate("ab") for k in range(3)}


def squares(grey: int) -> bytes:
    """A photograph of three by three even squares, each a little lighter, and a margin."""
    pixels = np.zeros((12, 15), dtype=np.uint8)
    steps = grey + np.arange(9, dtype=np.uint8).reshape(3, 3)
    pixels[:, 1:13] = steps.repeat(4, axis=0).repeat(4, axis=1)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="png")
    return file.getvalue()


def test_a_photographs_tiles_are_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, "DTD-10", classes=("a", "b"), sizes=(2, 18, 18), content="")
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
    declare(monkeypatch, "DTD-10", content="0" * 64)
    unread("DTD-10 have other content", "DTD-10", tmp_path / "packed", 8)


def test_its_pixels_are_the_same_on_every_machine() -> None:
    assert load_images("shifted-digits", 8, None, CPU)[1].startswith("bfef15728b82cb1c")


def test_it_has_the_digits_classes_in_their_order() -> None:
    moved, still = (load_images(name, 8, None, CPU)[0] for name in ("shifted-digits", "digits"))
    assert torch.equal(moved.test.labels, still.test.labels)
    assert len(moved.train) == len(still.train)


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
