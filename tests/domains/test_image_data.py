"""Images from archives and folders: what is read, and what is refused."""

import hashlib
import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image import data, decode
from contrastbench.domains.image.data import ImageFiles, Images, ImageSet, load
from contrastbench.domains.image.imagenet100 import CLASSES, SHA256
from contrastbench.losses import UserError

CPU = torch.device("cpu")


def noise(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, array: Any, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)


def folder(root: Path, parts: tuple[str, ...] = ("train", "test"), count: int = 3, side: int = 16) -> Path:
    """Two classes with some images each, all different."""
    for p, part in enumerate(parts):
        for c, name in enumerate(("cat", "dog")):
            for k in range(count):
                save(root / part / name / f"{k}.png", noise(side, side, 3, seed=100 * p + 10 * c + k))
    return root


def read(root: Path, size: int = 16) -> ImageSet:
    return load(f"folder:{root}", size, None, CPU)[0]


def digest(root: Path) -> str:
    return load(f"folder:{root}", 16, None, CPU)[1]


# The embedded digits


def test_digits_are_scikit_learns_enlarged() -> None:
    images, sha256 = load("digits", 32, None, CPU)
    assert isinstance(images.train, Images)
    assert (len(images.train), len(images.test), len(images.classes), len(sha256)) == (1438, 359, 10, 64)
    assert images.train.pixels.shape[1:] == (3, 32, 32)
    original, _ = load("digits", 8, None, CPU)
    rows = {row.tobytes() for row in (load_digits().images * 255 / 16).round().astype(np.uint8)}
    for part in (original.train, original.test):
        assert {image[c].numpy().tobytes() for image in part.batch(torch.arange(50)) for c in range(3)} <= rows
    assert images.test.labels.bincount().min() >= 35, "stratified"
    assert load("digits", 8, None, CPU)[1] == sha256, "the hash is that of the data, not of their size"


def test_a_part_is_picked_by_row_numbers() -> None:
    train = load("digits", 8, None, CPU)[0].train
    assert isinstance(train, Images)
    rows = torch.tensor([5, 1, 5])
    assert torch.equal(train.batch(rows), train.pixels[[5, 1, 5]])
    chosen = train.select(rows)
    assert (len(chosen), chosen.labels.tolist()) == (3, train.labels[[5, 1, 5]].tolist())


# Archives


def tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def as_folder(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def cifar_files(hundred: bool) -> dict[str, bytes]:
    """Records whose pixels are seeded noise and whose class is the record's number modulo the classes."""

    def part(count: int, seed: int) -> bytes:
        rows = np.concatenate([np.zeros((count, 1 + hundred), dtype=np.uint8), noise(count, 3072, seed=seed)], axis=1)
        rows[:, hundred * 1] = np.arange(count) % (100 if hundred else 10)
        rows[:, 0] = 7 if hundred else rows[:, 0]  # the coarse class, which is not read
        return rows.tobytes()

    if hundred:
        words = "\n".join(f"w{k}" for k in range(100)).encode()
        whole = {"train.bin": part(500, 0), "test.bin": part(100, 1), "fine_label_names.txt": words}
        return {f"cifar-100-binary/{name}": content for name, content in whole.items()}
    batches = {f"data_batch_{k}.bin": part(100, k) for k in range(1, 6)}
    whole = {**batches, "test_batch.bin": part(100, 6), "batches.meta.txt": b"plane\ncar\n\n"}
    return {f"cifar-10-batches-bin/{name}": content for name, content in whole.items()}


@pytest.fixture
def small_cifar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of CIFAR's records."""
    whole = data.records
    monkeypatch.setattr(data, "records", lambda name, raw, count, labels: whole(name, raw, count // 100, labels))
    data.load_declared.cache_clear()


@pytest.mark.usefixtures("small_cifar")
@pytest.mark.parametrize("hundred", [False, True])
def test_cifar_is_read_from_its_binary_version(hundred: bool, tmp_path: Path) -> None:
    name, files = ("CIFAR-100" if hundred else "CIFAR-10"), cifar_files(hundred)
    tar(tmp_path / f"{name.lower()}-binary.tar.gz", files)
    images, sha256 = load(name, 32, tmp_path, CPU)
    assert isinstance(images.train, Images)
    assert (len(images.train), len(images.test), images.unlabelled) == (500, 100, None)
    assert images.train.labels.tolist() == [k % (100 if hundred else 10) for k in range(100)] * 5
    assert images.test.labels.tolist() == [k % (100 if hundred else 10) for k in range(100)]
    first = noise(500 if hundred else 100, 3072, seed=0 if hundred else 1)[3].reshape(3, 32, 32)
    assert np.array_equal(images.train.pixels[3].numpy(), first)
    assert images.classes[:2] == (("w0", "w1") if hundred else ("plane", "car"))
    as_folder(tmp_path / "unpacked", files)
    assert load(name, 32, tmp_path / "unpacked", CPU)[1] == sha256


@pytest.mark.usefixtures("small_cifar")
def test_damaged_archives_are_one_line(tmp_path: Path) -> None:
    path, files = tmp_path / "cifar-10-binary.tar.gz", cifar_files(False)
    tar(path, {name: content for name, content in files.items() if "batch_3" not in name})
    refused(
        lambda: load("CIFAR-10", 32, tmp_path, CPU), r"has no cifar-10-batches-bin/data_batch_3\.bin: delete it and"
    )
    tar(path, {name: content[:-5] for name, content in files.items()})
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "CIFAR-10 is damaged: .* bytes instead of")
    tar(path, files)
    path.write_bytes(path.read_bytes()[:50_000])
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "tar.gz is damaged .* download https")
    path.write_text("<html>not found</html>")
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "tar.gz is damaged")


def test_stl_is_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = data.exactly
    monkeypatch.setattr(
        data,
        "exactly",
        lambda name, raw, shape: whole(name, raw[: int(np.prod(shape)) // 1000], (shape[0] // 1000, *shape[1:])),
    )
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
    data.load_declared.cache_clear()
    images, _ = load("STL-10", 32, tmp_path, CPU)
    assert isinstance(images.unlabelled, Images)
    assert np.array_equal(images.train.batch(torch.arange(5)).numpy(), pixels["train"])
    assert np.array_equal(images.unlabelled.pixels.numpy(), pixels["unlabeled"])
    assert images.train.labels.tolist() == [0, 9, 2, 3, 4]
    assert images.unlabelled.labels.unique().tolist() == [-1]


def jpeg(seed: int, side: int = 64) -> bytes:
    file = io.BytesIO()
    Image.fromarray(noise(side, side, 3, seed=seed)).save(file, "JPEG")
    return file.getvalue()


def tiny_files() -> dict[str, bytes]:
    files = {"wnids.txt": b"n2\nn1\n", "val/val_annotations.txt": b"v0.JPEG\tn1\t0\t0\t9\t9\nv1.JPEG\tn2\t0\t0\t9\t9\n"}
    files |= {f"train/{c}/images/{c}_{k}.JPEG": jpeg(k) for c in ("n1", "n2") for k in range(2)}
    files |= {f"train/{c}/{c}_boxes.txt": b"" for c in ("n1", "n2")}
    files |= {f"val/images/v{k}.JPEG": jpeg(9 + k) for k in range(2)} | {"test/images/t.JPEG": jpeg(20)}
    return {f"tiny-imagenet-200/{name}": content for name, content in files.items()}


def test_tiny_imagenet_is_read_in_its_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as archive:
        for name, content in tiny_files().items():
            archive.writestr(name, content)
    images, sha256 = load("Tiny-ImageNet", 64, tmp_path, CPU)
    assert (images.classes, images.train.labels.tolist(), images.test.labels.tolist()) == (
        ("n1", "n2"),
        [0, 0, 1, 1],
        [0, 1],
    )
    expected = np.asarray(Image.open(io.BytesIO(jpeg(10)))).transpose(2, 0, 1)
    assert np.array_equal(images.test.batch(torch.tensor([1]))[0].numpy(), expected)
    as_folder(tmp_path / "unpacked", tiny_files())
    assert load("Tiny-ImageNet", 64, tmp_path / "unpacked", CPU)[1] == sha256
    (tmp_path / "unpacked/tiny-imagenet-200/val/val_annotations.txt").write_text("v0.JPEG\tn3\n")
    data.load_declared.cache_clear()
    refused(lambda: load("Tiny-ImageNet", 64, tmp_path / "unpacked", CPU), "unknown class 'n3'")
    data.load_declared.cache_clear()
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(b"PK")
    refused(lambda: load("Tiny-ImageNet", 64, tmp_path, CPU), "zip is damaged .*: delete it and download http")


def test_imagenet_100_is_the_published_list_from_imagenets_folders(tmp_path: Path) -> None:
    assert hashlib.sha256("".join(f"{name}\n" for name in CLASSES).encode()).hexdigest() == SHA256
    assert len(set(CLASSES)) == 100
    refused(lambda: load("ImageNet-100", 224, None, CPU), "no data root is given: get ImageNet from")
    for place in ("train", "val"):
        for name in (*CLASSES, "n00000000"):
            as_folder(tmp_path / "imagenet" / place / name, {"x.JPEG": jpeg(0, 20)})
    images, _ = load("ImageNet-100", 16, tmp_path, CPU)
    assert images.classes == tuple(sorted(CLASSES))
    assert images.train.labels.tolist() == list(range(100))
    assert images.mean == data.IMAGENET_MEAN
    shutil.rmtree(tmp_path / "imagenet/val" / CLASSES[7])
    data.load_declared.cache_clear()
    refused(lambda: load("ImageNet-100", 16, tmp_path, CPU), f"val has no folder {CLASSES[7]}, one of")


def test_what_is_not_there_is_named() -> None:
    refused(
        lambda: load("CIFAR10", 32, None, CPU), "unknown image dataset 'CIFAR10': did you mean 'CIFAR-10'.*folder:PATH"
    )
    refused(lambda: load("Tiny-ImageNet", 64, None, CPU), "Tiny-ImageNet is not downloaded unhashed: get http")


# Folders


def test_a_folder_is_its_images(tmp_path: Path) -> None:
    images = read(folder(tmp_path))
    assert isinstance(images.train, Images)
    assert (images.classes, images.notes) == (("cat", "dog"), {})
    assert images.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(images.train.pixels[4].numpy(), noise(16, 16, 3, seed=11).transpose(2, 0, 1))
    assert np.array_equal(
        images.test.batch(torch.tensor([5]))[0].numpy(), noise(16, 16, 3, seed=112).transpose(2, 0, 1)
    )


def test_val_is_the_test_part_where_there_is_no_test(tmp_path: Path) -> None:
    assert len(read(folder(tmp_path, ("train", "val"))).test) == 6


def test_a_folder_without_parts_is_split_the_same_way_every_time(tmp_path: Path) -> None:
    images = read(folder(tmp_path, (".",), count=10))
    assert (images.train.labels.bincount().tolist(), images.test.labels.bincount().tolist()) == ([8, 8], [2, 2])
    pixels = torch.cat([part.batch(torch.arange(len(part))) for part in (images.train, images.test)])
    assert len(pixels.flatten(1).unique(dim=0)) == 20
    data.load_folder.cache_clear()
    assert torch.equal(read(tmp_path).test.batch(torch.arange(4)), images.test.batch(torch.arange(4)))


def test_the_folder_may_be_in_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "root" / "mine")
    monkeypatch.chdir(tmp_path)
    assert len(load("folder:mine", 16, tmp_path / "root", CPU)[0].train) == 6
    assert len(load("folder:root/mine", 16, None, CPU)[0].train) == 6
    refused(lambda: load("folder:mine", 16, None, CPU), "no folder mine; .*--data-root")
    refused(lambda: load("folder:mine", 16, tmp_path, CPU), "no folder mine, nor in")


def test_the_hash_is_that_of_names_and_bytes(tmp_path: Path) -> None:
    first = digest(folder(tmp_path / "a"))
    assert digest(folder(tmp_path / "b")) == first
    assert load(f"folder:{tmp_path / 'a'}", 32, None, CPU)[1] == first, "however they are stored"
    save(tmp_path / "b/train/cat/0.png", noise(16, 16, 3, seed=77))
    changed = digest(tmp_path / "b")
    assert changed != first
    (tmp_path / "b/train/cat/0.png").rename(tmp_path / "b/train/dog/9.png")
    assert digest(tmp_path / "b") not in (first, changed)


def test_images_of_several_sizes_are_stored_in_one(tmp_path: Path) -> None:
    root = folder(tmp_path)
    save(root / "train/cat/0.png", noise(40, 60, 3))
    save(root / "train/cat/1.png", noise(10, 12, 3))
    images = read(root)
    assert isinstance(images.train, Images)
    assert images.train.pixels.shape == (6, 3, 16, 16)
    assert images.notes == {"enlarged to 16 x 16": 1, "reduced or cut to 16 x 16": 1}
    large = Image.open(root / "train/cat/0.png").resize((24, 16), Image.Resampling.BILINEAR)
    assert np.array_equal(images.train.pixels[0].numpy(), np.asarray(large).transpose(2, 0, 1)[:, :, 4:20])


def test_large_images_of_one_size_are_reduced_and_small_ones_kept(tmp_path: Path) -> None:
    large = read(folder(tmp_path / "large", side=120), 64).train
    small = read(folder(tmp_path / "small", side=90), 64).train
    assert [part.batch(torch.tensor([0])).shape[-1] for part in (large, small)] == [64, 90]


@pytest.mark.parametrize("one_size", [True, False])
def test_files_that_do_not_fit_are_decoded_batch_by_batch(
    one_size: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path)
    if not one_size:
        save(root / "train/cat/0.png", noise(40, 60, 3))
    resident = read(root)
    monkeypatch.setattr(data, "RESIDENT_BYTES", 100)
    data.load_folder.cache_clear()
    files = read(root)
    assert isinstance(files.train, ImageFiles)
    rows = torch.tensor([4, 0, 4, 1])
    assert torch.equal(files.train.batch(rows), resident.train.batch(rows))
    assert torch.equal(files.train.select(rows).batch(torch.tensor([1, 0])), resident.train.batch(rows[[1, 0]]))
    assert torch.equal(files.train.select(rows).labels, resident.train.labels[rows])


# What folders hold besides RGB


def harmless(image: Image.Image, tmp_path: Path, suffix: str = "png", **options: Any) -> tuple[Any, dict[str, Any]]:
    """The pixels of an odd image among ordinary ones, and what is noted."""
    root = folder(tmp_path)
    (root / "train/cat/0.png").unlink()
    image.save(root / f"train/cat/0.{suffix}", **options)
    images = read(root)
    return images.train.batch(torch.tensor([0]))[0].numpy().transpose(1, 2, 0), images.notes


def test_grey_is_taken_in_all_colours(tmp_path: Path) -> None:
    grey = noise(16, 16)
    pixels, notes = harmless(Image.fromarray(grey), tmp_path)
    assert np.array_equal(pixels, np.stack([grey] * 3, axis=2))
    assert notes == {"grey, in all three colours": 1}


def test_transparency_is_left_out(tmp_path: Path) -> None:
    rgba = noise(16, 16, 4)
    pixels, notes = harmless(Image.fromarray(rgba), tmp_path)
    assert np.array_equal(pixels, rgba[:, :, :3])
    assert notes == {"transparency left out": 1}


@pytest.mark.parametrize("transparent", [False, True])
def test_a_palette_is_looked_up(transparent: bool, tmp_path: Path) -> None:
    image = Image.fromarray(noise(16, 16, 3)).quantize(16)
    expected = np.asarray(image.convert("RGB"))
    pixels, notes = harmless(image, tmp_path, **({"transparency": bytes(range(16))} if transparent else {}))
    assert np.array_equal(pixels, expected)
    assert notes == {"palette": 1}


def test_the_higher_byte_of_16_bit_grey_is_taken(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 65536, (16, 16), dtype=np.uint16)
    pixels, notes = harmless(Image.fromarray(values), tmp_path)
    assert np.array_equal(pixels[:, :, 0], values >> 8)
    assert notes == {"16-bit grey, higher 8 bits taken": 1}


def test_cmyk_is_converted(tmp_path: Path) -> None:
    image = Image.fromarray(np.full((16, 16, 3), (200, 100, 50), dtype=np.uint8)).convert("CMYK")
    pixels, notes = harmless(image, tmp_path, "jpg", quality=100)
    assert np.abs(pixels.astype(int) - (200, 100, 50)).max() < 6
    assert notes == {"CMYK, converted": 1}


def test_other_files_are_counted(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "train/cat/labels.txt").write_text("x")
    (root / "train/.hidden").write_text("x")
    assert read(root).notes == {"files left out, no images by their names": 1}


# What is refused


def refused(work: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        work()
    assert "\n" not in str(error.value)


def write(content: bytes, name: str = "train/cat/1.png") -> Callable[[Path], Any]:
    return lambda root: (root / name).write_bytes(content)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "one pixel": (
        lambda r: save(r / "test/dog/1.png", noise(1, 1, 3)),
        r"test/dog/1\.png has 1 x 1 pixels, fewer .*: remove",
    ),
    "text": (write(b"not an image"), r"train/cat/1\.png is no image \(it holds something else\): remove or replace it"),
    "empty file": (write(b""), r"train/cat/1\.png is no image \(it is empty\)"),
    "truncated jpeg": (
        write(jpeg(0, 16)[:-100], "train/cat/1.jpg"),
        r"train/cat/1\.jpg is damaged \(image file is truncated",
    ),
    "truncated png": (lambda r: shrink(r / "train/dog/2.png"), r"train/dog/2\.png is (damaged|no image)"),
    "float": (
        lambda r: save(r / "train/cat/1.tiff", noise(16, 16).astype(np.float32)),
        r"1\.tiff has pixels of mode F",
    ),
    "32 bits": (
        lambda r: save(r / "train/cat/1.tiff", noise(16, 16).astype(np.int32) * 1000),
        r"1\.tiff is damaged \(values of more than 16 bits\)",
    ),
    "empty class": (lambda r: (r / "train/bird").mkdir(), "class folder .*train/bird has no images: fill or remove it"),
    "no class folders": (
        lambda r: shutil.rmtree(r / "test/cat") or shutil.rmtree(r / "test/dog"),
        "test has no class folders",
    ),
    "class in test alone": (
        lambda r: folder(r).joinpath("test/cat").rename(r / "test/ox"),
        "test/ox: .*train has no such class",
    ),
    "one class": (
        lambda r: [shutil.rmtree(r / p / "dog") for p in ("train", "test")],
        "has a single class, cat: there is noth",
    ),
    "train alone": (
        lambda r: shutil.rmtree(r / "test"),
        "has train, but neither test nor val: add one, or give folder:.*train",
    ),
    "nothing": (
        lambda r: [shutil.rmtree(r / p) for p in ("train", "test")],
        "has no class folders: put the images of each",
    ),
}


def shrink(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_one_line(case: str, tmp_path: Path) -> None:
    spoil, message = BAD[case]
    spoil(folder(tmp_path))
    refused(lambda: read(tmp_path), message)


def test_a_class_of_one_image_cannot_be_split(tmp_path: Path) -> None:
    root = folder(tmp_path, (".",))
    save(root / "ox/0.png", noise(16, 16, 3))
    refused(lambda: read(root), "ox has one image, but training and test part need one each")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (folder(tmp_path) / "train/cat/1.png").chmod(0)
    refused(lambda: read(tmp_path), r"cannot read .*1\.png \(Permission denied\)")


def test_a_file_damaged_later_is_named_by_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "RESIDENT_BYTES", 100)
    data.load_folder.cache_clear()
    files = read(folder(tmp_path)).train
    (tmp_path / "train/cat/1.png").unlink()
    refused(lambda: files.batch(torch.arange(6)), r"cannot read .*1\.png \(No such file")


def test_the_first_bad_file_is_named_however_many_threads_read(tmp_path: Path) -> None:
    root = folder(tmp_path, count=9)
    for k in (3, 5, 7):
        (root / f"train/cat/{k}.png").write_text("x")
    refused(
        lambda: decode.look_at(["train/cat/7.png", "train/cat/3.png"], decode.folder_reader(root)), "7.png is no image"
    )
    refused(lambda: read(root), r"cat/3\.png is no image")


def test_the_real_subset_of_cifar(shared: Callable[..., Path]) -> None:
    images, sha256 = load("folder:cifar10-subset", 32, shared("data", "cifar10-subset").parent, CPU)
    assert (len(images.train), len(images.test), len(images.classes), images.notes) == (5085, 1017, 10, {})
    assert sha256.startswith("530b6131910cd7f0")
