"""Archives and checkpoints that are out to harm: refused in one line or read as they are.

Nothing is written, run, unpickled or connected to, and no link out of them is followed.
"""

import gzip
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import datasets
import numpy as np
import pyarrow as arrow
import pytest
from PIL import Image
from pyarrow import parquet

import hostile
import made_images
import raw_files
import senteval
from contrastbench.domains import reading, saved
from contrastbench.domains.graph import own as own_graphs
from contrastbench.domains.image.data import archives, decode
from contrastbench.domains.image.data import own as own_images
from contrastbench.domains.own import read_unchanged
from contrastbench.domains.sentence import data as sentences
from contrastbench.domains.sentence import own as own_texts
from contrastbench.losses import UserError

MOST = 1 << 20  # bytes that the readers take here


class Reader(NamedTuple):
    file: str  # the archive's name
    files: hostile.Files
    read: Callable[[Path], str]  # its content's hash, of the folder that has the archive
    named: str  # what a refusal has


def array_files() -> hostile.Files:
    arrays = {"images": made_images.noise(8, 16, 16), "labels": np.arange(8) % 2}
    files = {}
    for name, values in arrays.items():
        file = io.BytesIO()
        np.save(file, values)
        files[f"{name}.npy"] = file.getvalue()
    return files


def senteval_files(folder: Path) -> hostile.Files:
    senteval.make(folder, [])
    root = folder / "senteval/downstream"
    names = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    names.sort(key=lambda name: "sts-dev" not in name.name)  # the first is read first
    return {f"downstream/{name}": (root / name).read_bytes() for name in names}


@pytest.fixture
def readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> Iterator[dict[str, Reader]]:
    for module in (reading, archives, sentences, own_images):
        monkeypatch.setattr(module, "UNPACKED", MOST)
    monkeypatch.setattr(reading.member, "__defaults__", (MOST,))
    monkeypatch.setattr(decode, "PACKED", MOST)
    made = {
        "graphs": ("TOY.zip", raw_files.TOY, "a zip of TU files"),
        "images": ("tiny-imagenet-200.zip", raw_files.TINY, "Tiny-ImageNet"),
        "arrays": ("mine.npz", array_files(), "arrays"),
        "sentences": ("senteval.tar", senteval_files(tmp_path / "made"), "SentEval"),
        "pictures": ("cifar-10-binary.tar.gz", raw_files.CIFAR_10, "CIFAR-10"),
    }
    with raw_files.small():
        yield {
            name: Reader(file, files, raw_files.RAW[raw].read, raw_files.RAW[raw].named or file)
            for name, (file, files, raw) in made.items()
        }


def verdict(read: Callable[[], str], whole: str, named: str) -> str:
    """What became of it; another content, another exception and two lines are defects."""
    said = ""
    try:
        assert read() == whole, "another content, silently"
    except UserError as error:
        said = str(error)
    assert not said or (named in said and len(said.splitlines()) == 1)
    return hostile.REFUSED if said else hostile.READ


def besiege(
    reader: Reader,
    tricks: hostile.Tricks,
    pack: Callable[[hostile.Files | hostile.Entries], bytes],
    squeeze: Callable[[bytes], bytes],
    root: Path,
) -> int:
    """Read the archive after each trick, and return how many there were."""
    canary, data = root / "canary", root / "a/data"
    canary.mkdir(parents=True)
    data.mkdir(parents=True)
    (canary / "secret").write_bytes(b"1, 2\n2, 1\n")
    (data / reader.file).write_bytes(squeeze(pack(reader.files)))
    whole, first = reader.read(data), next(iter(reader.files))
    named = [(wanted, *one) for wanted, some in tricks.items() for one in some.items()]
    for wanted, name, make in named:
        made = make(reader.files, first, canary)
        (data / reader.file).write_bytes(squeeze(made if isinstance(made, bytes) else pack(made)))
        before = hostile.tree(root)
        with hostile.watched(canary) as touched:
            became = verdict(lambda: reader.read(data), whole, reader.named)
        assert wanted in (became, hostile.EITHER), name
        assert touched == [], name
        assert hostile.tree(root) == before, name
    return len(named)


@pytest.mark.parametrize("name", ["graphs", "images", "arrays"])
def test_zips(
    name: str, readers: dict[str, Reader], tmp_path: Path, found: Callable[[str], None]
) -> None:
    count = besiege(readers[name], hostile.ZIPS, hostile.zipped, bytes, tmp_path / "siege")
    found(f"data: {count} hostile zips of {name}: nothing touched")


@pytest.mark.parametrize("name", ["sentences", "pictures"])
def test_tars(
    name: str, readers: dict[str, Reader], tmp_path: Path, found: Callable[[str], None]
) -> None:
    squeeze = gzip.compress if name == "pictures" else bytes
    count = besiege(readers[name], hostile.TARS, hostile.tarred, squeeze, tmp_path / "siege")
    found(f"data: {count} hostile tars of {name}: nothing touched")


def object_array(canary: Path) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([hostile.Reduced(canary / "owned")], dtype=object), allow_pickle=True)
    return file.getvalue()


LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
DOCTYPE = '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY l0 "ha">{}]>'
GRAPHML = (
    '{}<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    '<node id="a">{}</node><node id="b"/><edge source="a" target="b"/></graph></graphml>'
)


def png(*chunks: tuple[bytes, bytes], width: int = 16) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, width, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(48) for _ in range(16)))
    some = [(b"IHDR", head), *chunks, (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in some)


IMAGES: dict[str, Callable[[Path], bytes]] = {
    "a picture of 10 billion pixels": lambda c: png(width=100_000),
    "a note of a gigabyte": lambda c: png((b"zTXt", b"x\0\0" + zlib.compress(bytes(1 << 27)))),
    "a program of PostScript": lambda c: (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n("
        + bytes(c / "owned")
        + b") (w) file closefile\n%%EOF\n"
    ),
    "a vector graphic": lambda c: (
        b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file://'
        + bytes(c)
        + b'/secret"/></svg>'
    ),
    "a pickle": lambda c: hostile.pickled(c / "owned"),
    "a page of Windows": lambda c: b"\xd7\xcd\xc6\x9a" + bytes(18) + b"\1\0\t\0\0\3" + bytes(40),
    "a font": lambda c: b"%!PS-AdobeFont-1.0" + bytes(100),
    "an archive": lambda c: hostile.zipped({"a.png": png()}),
}


def test_images(tmp_path: Path, found: Callable[[str], None]) -> None:
    root, canary = made_images.folder(tmp_path / "images"), tmp_path / "canary"
    canary.mkdir()
    (canary / "secret").write_bytes(b"secret")
    Image.init()  # imports its readers, which is no touch of an image
    for name, make in IMAGES.items():
        (root / "train/cat/odd.png").write_bytes(make(canary))
        read_unchanged.cache_clear()
        with (
            hostile.watched(canary) as touched,
            pytest.raises(UserError, match=r"odd\.png"),
        ):
            own_images.load_images(f"folder:{root}", 16, None, made_images.CPU)
        assert touched == [], name
        assert not (canary / "owned").exists(), name
    found(f"data: {len(IMAGES)} hostile images: nothing touched")


def test_graph_files(tmp_path: Path, found: Callable[[str], None]) -> None:
    canary, root = tmp_path / "canary", tmp_path / "graphs"
    for folder in (canary, root):
        folder.mkdir()
    (canary / "secret").write_text("secret")
    (root / "labels.csv").write_text("a.graphml,0\nb.graphml,1\n")
    (root / "b.graphml").write_text(GRAPHML.format("", ""))
    outside = f'<!ENTITY out SYSTEM "file://{canary}/secret">'
    remote = '<!ENTITY % out SYSTEM "http://127.0.0.1:9/x"> %out;'
    for text in (
        GRAPHML.format(DOCTYPE.format(LAUGHS), "&l9;"),
        GRAPHML.format(DOCTYPE.format(outside), "&out;"),
        GRAPHML.format(DOCTYPE.format(remote), "&out;"),
        "<a>" * 100_000,
    ):
        (root / "a.graphml").write_text(text)
        read_unchanged.cache_clear()
        with hostile.watched(canary) as touched, pytest.raises(UserError) as error:
            own_graphs.load_own_graphs(f"folder:{root}", None)
        assert "graphml" in str(error.value)
        assert touched == []
    found("data: 4 hostile files of GraphML: nothing touched")


def test_objects_in_arrays(readers: dict[str, Reader], tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    for key in ("images.npy", "labels.npy"):
        packed = hostile.zipped({**readers["arrays"].files, key: object_array(canary)})
        (tmp_path / "mine.npz").write_bytes(packed)
        with hostile.watched(canary) as touched, pytest.raises(UserError, match=r"mine\.npz"):
            readers["arrays"].read(tmp_path)
        assert (touched, list(canary.iterdir())) == ([], [])


@pytest.mark.parametrize("name", ["data.bin", "../data.arrow"])
def test_a_file_that_a_saved_set_names_is_validated_before_it_is_mapped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets.Dataset.from_dict({"a": [1.0] * 99}).save_to_disk(str(tmp_path / "mine"))
    (tmp_path / "mine/data-00000-of-00001.arrow").rename(tmp_path / "mine" / name)
    state = json.loads((tmp_path / "mine/state.json").read_text())
    text = json.dumps({**state, "_data_files": [{"filename": name}]})
    (tmp_path / "mine/state.json").write_text(text)
    assert saved.load_saved(tmp_path / "mine")["a"][98] == 1.0
    (tmp_path / "mine" / name).write_bytes((tmp_path / "mine" / name).read_bytes()[:-400])
    monkeypatch.setattr(datasets, "load_from_disk", lambda _: pytest.fail("it is mapped"))
    with pytest.raises(UserError, match=rf"{Path(name).name} is damaged"):
        saved.load_saved(tmp_path / "mine")


SAVED = {  # what is wrong with a set, by what it says of itself and its files
    "a pipe": ("state.json", lambda p: os.mkfifo(p), "not a regular file"),
    "a pipe of data": ("data-00000-of-00001.arrow", lambda p: os.mkfifo(p), "is no file"),
    "a tower": ("state.json", lambda p: p.write_text("[" * 10**5), "is no saved set"),
    "nothing": ("state.json", Path.touch, "is no saved set"),
    "no file": ("dataset_info.json", lambda p: p.with_name("state.json").unlink(), ": name a"),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_set_without_an_end_is_refused(name: str, tmp_path: Path) -> None:
    parts = {part: datasets.Dataset.from_dict({"a": [None] * 99}) for part in ("train", "test")}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "mine"))
    file, spoil, message = SAVED[name]
    (tmp_path / "mine/test" / file).unlink()
    spoil(tmp_path / "mine/test" / file)
    with pytest.raises(UserError, match=message):
        saved.load_saved(tmp_path / "mine")


def test_few_bytes_of_arrow_stand_for_no_more_than_the_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nulls take no bytes, and batches may be compressed: 2 KB were read for minutes."""
    data = datasets.Dataset.from_dict({"a": [None] * 99, "b": [1.0] * 99})
    datasets.DatasetDict(train=data, test=data).save_to_disk(str(tmp_path / "mine"))
    size = sum(one.data.nbytes for one in (data, data))
    for bound, most in (("MAX_NUMBERS", 4 * 99), ("MAX_BYTES", size)):
        with monkeypatch.context() as patch:
            patch.setattr(saved, bound, most)
            assert {*saved.load_saved(tmp_path / "mine")} == {"train", "test"}
            patch.setattr(saved, bound, most - 1)
            with pytest.raises(UserError, match="mine is too large: leave rows"):
                saved.load_saved(tmp_path / "mine")


def test_a_saved_set_with_two_splits_for_a_part_is_refused(tmp_path: Path) -> None:
    """The last of two was taken, without a word."""
    data = datasets.Dataset.from_dict({"a": [1.0] * 9})
    datasets.DatasetDict(train=data, Training=data, test=data).save_to_disk(str(tmp_path / "mine"))
    with pytest.raises(UserError, match="several splits for the train part"):
        saved.saved_parts("mine", tmp_path)


def test_few_bytes_of_parquet_stand_for_no_more_texts_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal texts are kept once: 1,194 bytes stood for six gigabytes."""
    table = arrow.table(
        {"a": ["x" * 100] * 50, "b": [b"y"] * 50, "c": [None, "z"] * 25, "n": [1] * 50}
    )
    table = table.append_column("d", table["c"].dictionary_encode())
    parquet.write_table(table, tmp_path / "t.parquet")
    texts = 50 * 100 + 50 + 25 + 25
    monkeypatch.setattr(saved, "MAX_TEXT", texts)
    assert saved.schema_of(tmp_path / "t.parquet").names == ["a", "b", "c", "n", "d"]
    monkeypatch.setattr(saved, "MAX_TEXT", texts - 1)
    with pytest.raises(UserError, match=r"too large \(50 rows of 5 columns\): shorten texts"):
        saved.schema_of(tmp_path / "t.parquet")
    monkeypatch.setattr(saved, "MAX_NUMBERS", 999)
    plain = {"write_statistics": False, "store_schema": False, "compression": "none"}
    for column in (arrow.array([[None] * 10_000]), arrow.nulls(10_000)):
        parquet.write_table(arrow.table({"a": column}), tmp_path / "f.parquet", **plain)
        data = (tmp_path / "f.parquet").read_bytes()
        data = data.replace(b"\x16\xa0\x9c\1", b"\x16\x82\x80\0", 2)
        (tmp_path / "f.parquet").write_bytes(data)  # as of one value
        fault = r"too large \(10000 rows of 1 columns|: column a holds lists"
        with pytest.raises(UserError, match=fault):
            saved.schema_of(tmp_path / "f.parquet")
    monkeypatch.setattr(saved, "MAX_NUMBERS", 10_000)
    assert len(saved.load_saved(tmp_path / "f.parquet")) == len(
        parquet.read_table(tmp_path / "f.parquet")
    )


def test_pictures_that_a_saved_set_names_are_not_opened(tmp_path: Path) -> None:
    named = [{"bytes": None, "path": str(tmp_path / "secret")}]
    table = arrow.table({"text": arrow.array(named, datasets.Image.pa_type)})
    info = {"features": datasets.Features(text=datasets.Image()).to_dict()}
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": info})})
    parquet.write_table(table, tmp_path / "mine.parquet")
    with hostile.watched(tmp_path / "secret") as touched:
        assert "secret" in own_texts.saved_texts("mine.parquet", tmp_path)[0]
    assert touched == []
