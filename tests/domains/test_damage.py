"""Every reader of what a user hands in: a damaged file is one line that names it.

Formats without checksums may be read as other content, whose hash stands in the record.
"""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import senteval
from contrastbench.domains import hub
from contrastbench.domains.sentence import data as sentences
from contrastbench.domains.sentence.transfer import tasks
from contrastbench.domains.tabular import data as tables
from contrastbench.domains.tabular import own, separated
from contrastbench.losses import UserError
from damaged import attack

pytest.importorskip("pandas")
pytest.importorskip("PIL")
import pandas as pd
from PIL import Image

import made_images
from contrastbench.domains.image.data import cifar, decode
from contrastbench.domains.image.data import load as data
from contrastbench.domains.image.data import own as image_own
from contrastbench.domains.image.data.datasets import DATASETS

ROWS = "".join(f"{k},{('red', 'blue')[k % 2]},{('no', 'yes')[k % 2]}\n" for k in range(40))


def table(name: str) -> str:
    own.load_unchanged.cache_clear()
    return tables.load_rows(name, "y")[1]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,colour,y\n" + ROWS)
    assert attack(path, lambda: table(f"csv:{path}"), flips=150) > 50


def test_a_packed_csv_of_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(("a,y\n" + "1,2\n" * 10_000).encode()))
    monkeypatch.setattr(separated, "UNPACKED", 40_000)
    monkeypatch.setattr(pd, "read_csv", lambda *_, **__: pytest.fail("it is not read"))
    with pytest.raises(UserError, match=r"bomb\.csv\.gz unpacks to more than"):
        table(f"csv:{path}")


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.read_csv(io.StringIO("a,colour,y\n" + ROWS)).to_parquet(path)
    assert attack(path, lambda: table(f"parquet:{path}"), flips=400) > 100


def test_a_parquet_file_of_too_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.read_csv(io.StringIO("a,colour,y\n" + ROWS)).to_parquet(path)
    monkeypatch.setattr(hub, "MAX_NUMBERS", 100)
    with pytest.raises(UserError, match=r"t\.parquet is too large \(40 rows of 3 columns\)"):
        table(f"parquet:{path}")


def test_a_packed_declared_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    small = replace(tables.DATASETS["CoverType"], sizes=(15_200, 55))
    monkeypatch.setitem(tables.DATASETS, "CoverType", small)
    row = ",".join(["1"] * 54)
    text = "".join(f"{row},{k % 7}\n" for k in range(15_200))
    path = tmp_path / "covtype.data.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))

    def read() -> str:
        tables.load_declared.cache_clear()
        return tables.load_rows("CoverType", data_root=tmp_path)[1]

    assert attack(path, read, flips=10) > 10


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "bmp", "tiff", "webp", "pgm"])
def test_an_image_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    pixels = made_images.noise(16, 16) if kind == "pgm" else made_images.noise(16, 16, 3)
    made_images.save(path, pixels)

    def read() -> str:
        content = decode.folder_reader(tmp_path)(path.name)
        return decode.image_header(path.name, content).sha256 * bool(
            len(decode.decode(path.name, content, 16))
        )

    assert attack(path, read, flips=200) >= 9


def noisy_zip(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def tiny_files() -> dict[str, bytes]:
    files = {"wnids.txt": b"n1\nn2\n", "val/val_annotations.txt": b"v0\tn1\t0\nv1\tn2\t0\n"}
    files |= {f"train/{c}/images/{c}.JPEG": made_images.jpeg(k) for k, c in enumerate(("n1", "n2"))}
    files |= {f"val/images/v{k}": made_images.jpeg(9 + k) for k in range(2)}
    return {f"tiny-imagenet-200/{name}": content for name, content in files.items()}


def declared(name: str, root: Path) -> Callable[[], str]:
    def read() -> str:
        data.load_declared.cache_clear()
        return data.load_images(name, 64, root, made_images.CPU)[1]

    return read


@pytest.mark.usefixtures("offline")
def test_a_zip_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tiny-imagenet-200.zip"
    noisy_zip(path, tiny_files())
    monkeypatch.setitem(
        DATASETS, "Tiny-ImageNet", replace(DATASETS["Tiny-ImageNet"], sizes=(2, 2, 2))
    )
    read = declared("Tiny-ImageNet", tmp_path)
    assert attack(path, read, flips=200, named="iny-", checked=True) > 100


def test_lists_beside_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        DATASETS, "Tiny-ImageNet", replace(DATASETS["Tiny-ImageNet"], sizes=(2, 2, 2))
    )
    made_images.as_folder(tmp_path, tiny_files())
    for name in ("wnids.txt", "val/val_annotations.txt"):
        path, read = tmp_path / "tiny-imagenet-200" / name, declared("Tiny-ImageNet", tmp_path)
        assert attack(path, read, flips=60, named="iny-") > 10


def test_a_zipped_image_of_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy_zip(tmp_path / "bomb.zip", {"a.png": bytes(10_000)})
    monkeypatch.setattr(decode, "PACKED", 9_999)
    with pytest.raises(UserError, match=r"a\.png in .*bomb\.zip unpacks to more than"):
        decode.zip_reader(tmp_path / "bomb.zip", "replace it")("a.png")


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO()
    Image.fromarray(np.zeros((300, 200, 3), np.uint8)).save(file, "PNG")
    monkeypatch.setattr(decode, "MAX_PIXELS", 59_999)
    with pytest.raises(UserError, match=r"a\.png is too large \(200 x 300 pixels, more than"):
        decode.image_header("a.png", file.getvalue())


@pytest.mark.usefixtures("offline")
def test_a_tar_of_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, whole = tmp_path / "cifar-10-binary.tar.gz", cifar.binary_records
    small = lambda name, raw, count, labels: whole(name, raw, count // 1000, labels)  # noqa: E731
    monkeypatch.setattr(cifar, "binary_records", small)
    anything = replace(DATASETS["CIFAR-10"], content="")
    monkeypatch.setitem(DATASETS, "CIFAR-10", anything)
    rows = np.concatenate([np.arange(10)[:, None], made_images.noise(10, 3072)], axis=1)
    parts = {f"data_batch_{k}.bin": rows.astype(np.uint8).tobytes() for k in range(1, 6)}
    parts |= {"test_batch.bin": parts["data_batch_1.bin"], "batches.meta.txt": b"plane\ncar\n"}
    with tarfile.open(path, "w:gz") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert attack(path, declared("CIFAR-10", tmp_path), 100, checked=True) > 50
    made_images.as_folder(
        tmp_path, {f"cifar-10-batches-bin/{name}": content for name, content in parts.items()}
    )
    for name in ("batches.meta.txt", "test_batch.bin"):
        path = tmp_path / "cifar-10-batches-bin" / name
        assert attack(path, declared("CIFAR-10", tmp_path), 60, named="-10") > 1


def folder(root: Path) -> str:
    image_own.load_unchanged.cache_clear()
    return data.load_images(f"folder:{root}", 16, None, made_images.CPU)[1]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_a_pipe_and_a_link_to_nowhere_are_named(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    root = made_images.folder(tmp_path)
    make(root / "train/cat/odd.png")
    made_images.refused(lambda: folder(root), r"train/cat/odd\.png")
    made_images.refused(lambda: decode.folder_reader(root)("train/cat/odd.png"), "cannot")


def sets(root: Path) -> str:
    read = sentences.TextFiles(root)
    sentences.stsb_pairs(read, "dev")
    sentences.sts_sets(read)
    tasks(read)
    return read.sha256.hexdigest()


def test_senteval(tmp_path: Path, small_sets: None) -> None:
    senteval.make(tmp_path, [])
    root, path = tmp_path / "senteval/downstream", tmp_path / "senteval.tar"
    for file in ("STS/STSBenchmark/sts-dev.csv", "STS/STS12-en-test/STS.gs.MSRpar.txt"):
        assert attack(root / file, lambda: sets(root), 40, named="STS") > 10
    with tarfile.open(path, "w") as tar:
        tar.add(tmp_path / "senteval", "senteval")
    assert attack(path, lambda: sets(path), 150) > 30


def test_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(senteval.sentence(k) for k in range(20)))
    read = lambda: sentences.read_corpus(path.name, tmp_path).sha256  # noqa: E731
    assert attack(path, read, flips=100) > 5


@pytest.mark.parametrize("gold", ["nan", "inf"])
def test_a_gold_score_is_a_number(gold: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has a damaged pair"):
        sentences.scored_pairs(tmp_path, "x", [["a", "b", "1"], ["c", "d", gold]])
