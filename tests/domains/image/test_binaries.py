"""CIFAR and STL-10 from archives and folders: what is read, and what is refused."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from contrastbench.domains.image import binaries
from contrastbench.domains.image.data import load, load_declared
from contrastbench.domains.image.images import Images
from made_images import CPU, as_folder, noise, refused


def tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def cifar_files(hundred: bool) -> dict[str, bytes]:
    """Records of seeded noise whose class is the record's number modulo the classes."""

    def part(count: int, seed: int) -> bytes:
        rows = np.concatenate(
            [np.zeros((count, 1 + hundred), dtype=np.uint8), noise(count, 3072, seed=seed)], axis=1
        )
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
    whole = binaries.records
    monkeypatch.setattr(
        binaries, "records", lambda name, raw, count, labels: whole(name, raw, count // 100, labels)
    )
    load_declared.cache_clear()


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
        lambda: load("CIFAR-10", 32, tmp_path, CPU),
        r"has no cifar-10-batches-bin/data_batch_3\.bin: delete it and",
    )
    tar(path, {name: content[:-5] for name, content in files.items()})
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "CIFAR-10 is damaged: .* bytes instead of")
    tar(path, files)
    path.write_bytes(path.read_bytes()[:50_000])
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "tar.gz is damaged .* download https")
    path.write_text("<html>not found</html>")
    refused(lambda: load("CIFAR-10", 32, tmp_path, CPU), "tar.gz is damaged")


def test_stl_is_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = binaries.exactly
    monkeypatch.setattr(
        binaries,
        "exactly",
        lambda name, raw, shape: whole(
            name, raw[: int(np.prod(shape)) // 1000], (shape[0] // 1000, *shape[1:])
        ),
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
    load_declared.cache_clear()
    images, _ = load("STL-10", 32, tmp_path, CPU)
    assert isinstance(images.unlabelled, Images)
    assert np.array_equal(images.train.batch(torch.arange(5)).numpy(), pixels["train"])
    assert np.array_equal(images.unlabelled.pixels.numpy(), pixels["unlabeled"])
    assert images.train.labels.tolist() == [0, 9, 2, 3, 4]
    assert images.unlabelled.labels.unique().tolist() == [-1]
