"""Files of the store: damaged, on a full disk, and after a power cut at any moment."""

import errno
import io
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from contrastbench.benchmarks.cli import main
from contrastbench.benchmarks.records import files, packing, packs, reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.records.store import check_writable
from contrastbench.benchmarks.running import checkpoints
from contrastbench.benchmarks.submission import bundle
from contrastbench.domains import download
from contrastbench.domains.graph import DATASETS
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from counts import dice, times
from damaged import flipped
from made_records import add, record_of

RECORD = record_of(Experiment("graph", "MUTAG", LossSpec("infonce"), {}), 3)
STATE = {"step": 7, "losses": [0.5, 0.25]}
WEIGHTS = {"model.weight": torch.arange(12.0).reshape(3, 4), "model.bias": torch.ones(3)}


def every_damage(path: Path, name: str) -> Iterator[None]:
    """The file cut at every byte, and with single bits flipped; then whole again."""
    whole, rng = path.read_bytes(), dice(name)
    for damage in (*(whole[:end] for end in range(len(whole))), *flipped(whole, times(300), rng)):
        path.write_bytes(damage)
        yield
    path.write_bytes(whole)


def test_a_damaged_record(ram: Path, found: Callable[[str], None]) -> None:
    path, named, equal = add(ram, 3, 70.0), 0, 0
    whole = store.read_record(path)
    for _ in every_damage(path, "record"):
        try:
            equal += store.read_record(path) == whole
        except UserError as error:
            named += str(path) in str(error) and "\n" not in str(error)
    size = path.stat().st_size
    assert named + equal == size + times(300)
    assert equal < 20, "only what JSON does not mind, such as a missing end of line"
    found(f"store: a record cut at {size} bytes, {times(300)} bits flipped: 0 silent")


def test_a_damaged_pack(ram: Path, found: Callable[[str], None]) -> None:
    record, named = add(ram, 3, 70.0), 0
    list(packing.pack(ram))
    (path,) = ram.rglob(packs.PACK_PATTERN)
    size = path.stat().st_size
    for _ in every_damage(path, "pack"):
        try:
            packs.open_pack(path)
        except UserError as error:
            named += str(path) in str(error) and "\n" not in str(error)
    assert named == size + times(300)
    assert reading.find_record(record)
    found(f"store: a pack cut at {size} bytes, {times(300)} bits flipped: 0 silent")


def test_a_damaged_checkpoint(
    ram: Path, capsys: pytest.CaptureFixture[str], found: Callable[[str], None]
) -> None:
    path, known = ram / "it.safetensors", 0
    checkpoints.write_checkpoint(path, WEIGHTS, STATE)
    size = path.stat().st_size
    for _ in every_damage(path, "checkpoint"):
        known += checkpoints.read_checkpoint(path) is None
    assert known == size + times(300)
    assert len(capsys.readouterr().err.splitlines()) == known
    assert checkpoints.read_checkpoint(path)
    found(f"store: a checkpoint cut at {size} bytes, {times(300)} bits flipped: 0 silent")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def points(size: int) -> list[int]:
    return sorted({size * k // times(100) for k in range(times(100))})


@pytest.mark.parametrize("what", ["record", "checkpoint", "page"])
def test_a_full_disk(what: str, tmp_path: Path, found: Callable[[str], None]) -> None:
    """What is there stays whole, and what was on its way is gone."""
    path = store.record_path(tmp_path, RECORD) if what == "record" else tmp_path / "it.safetensors"

    def write(number: int) -> None:
        if what == "record":
            store.publish_record(RECORD, path)
        elif what == "checkpoint":
            checkpoints.write_checkpoint(path, WEIGHTS, {**STATE, "step": number})
        else:
            files.replace(path, f"{number}" * 10_000)

    write(1)
    whole = path.read_bytes()
    if what == "record":  # which is never replaced
        path.unlink()
    for point in points(len(whole)):
        with room_for(point), pytest.raises(OSError, match=r"File too large|cannot write"):
            write(2)
        left = [file.read_bytes() for file in path.parent.iterdir()]
        assert left == ([] if what == "record" else [whole])
    write(2)
    found(f"store: {len(points(len(whole)))} disks full within a {what}: absent or the old one")


def test_records_go_from_one_mount_to_another(ram: Path, tmp_path: Path) -> None:
    path = add(ram, 0, 70.0)
    assert merge_records([ram], tmp_path).added == 1
    assert (tmp_path / path.relative_to(ram)).read_bytes() == path.read_bytes()


class Disk:
    """A folder, and what a power cut after each call may leave of it.

    A name that was not followed by a sync of its folder may be there or not; data that were not
    synced may be whole, cut or absent.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.left = folder, list[dict[str, bytes]]()
        self.synced: dict[int, bytes] = {p.stat().st_ino: p.read_bytes() for p in folder.iterdir()}
        self.names = self.now()
        for owner, name in ((os, "link"), (Path, "replace"), (Path, "unlink")):
            monkeypatch.setattr(owner, name, self.noted(getattr(owner, name)))
        monkeypatch.setattr(os, "fsync", self.noted(self.sync))
        monkeypatch.setattr(Path, "open", lambda *args, **kwargs: self.open(*args, **kwargs))
        monkeypatch.setattr(checkpoints, "save_file", self.noted(checkpoints.save_file))

    def now(self) -> dict[str, tuple[int, bytes]]:
        paths = [Path(self.folder, name) for name in os.listdir(self.folder)]  # noqa: PTH208
        return {path.name: (path.stat().st_ino, path.read_bytes()) for path in paths}

    def noted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, and then what may be left."""

        def noting(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self.note()
            return result

        return noting

    def note(self) -> None:
        now = self.now()
        for names in (now, self.names):
            for share in (0, 1, 2):
                self.left.append(
                    {
                        name: self.after_cut(number, dict(now.values()).get(number, b""), share)
                        for name, (number, _) in names.items()
                    }
                )

    def after_cut(self, number: int, data: bytes, share: int) -> bytes:
        """A file's bytes, so many halves of the unsynced ones among them."""
        kept = self.synced.get(number, b"")
        return kept + data[len(kept) :][: (len(data) - len(kept)) * share // 2]

    def sync(self, handle: int) -> None:
        """Data, or the names of the folder, are on the disk."""
        about = os.fstat(handle)
        if about.st_ino == self.folder.stat().st_ino:
            self.names = self.now()
        else:
            self.synced[about.st_ino] = Path(f"/proc/self/fd/{handle}").read_bytes()

    def open(self, path: Path, *args: Any, **kwargs: Any) -> Any:
        """A file whose text is written in two halves."""
        file = open(path, *args, **kwargs)  # noqa: PTH123, SIM115
        if not isinstance(file, io.TextIOWrapper):
            return file
        write = file.write

        def halves(text: str) -> None:
            for half in (text[: len(text) // 2], text[len(text) // 2 :]):
                write(half)
                file.flush()
                self.note()

        file.write = halves
        return file


def after_cuts(disk: Disk, folder: Path) -> Iterator[Path]:
    for left in disk.left:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in left.items():
            (folder / name).write_bytes(data)
        yield folder


def test_a_power_cut_within_a_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Callable[[str], None]
) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        store.publish_record(RECORD, folder / "it.json")
    there = 0
    for left in after_cuts(disk, tmp_path / "left"):
        if (left / "it.json").exists():
            there += store.read_record(left / "it.json") == RECORD
            continue
        assert not list(left.glob("*.json"))
    assert 0 < there < len(disk.left)
    assert set(disk.left[-1]) == {"it.json"}, "what is published stays"
    found(f"store: {len(disk.left)} power cuts within a publish: absent or valid")


def test_a_power_cut_within_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Callable[[str], None]
) -> None:
    folder = tmp_path / "checkpoints"
    checkpoints.write_checkpoint(folder / "it.safetensors", WEIGHTS, STATE)
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        checkpoints.write_checkpoint(folder / "it.safetensors", WEIGHTS, {**STATE, "step": 8})
    steps = []
    for left in after_cuts(disk, tmp_path / "left"):
        checkpoint = checkpoints.read_checkpoint(left / "it.safetensors")
        assert checkpoint
        steps.append(checkpoint[1]["step"])
    assert set(steps) == {7, 8}
    assert steps[-1] == 8
    found(f"store: {len(steps)} power cuts within a checkpoint: the old or the new one")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.touch() or os.truncate(path, 2**40), "larger than"),
        (lambda path: path.symlink_to(path.with_name("gone")), "No such file"),
        (os.mkdir, "not a regular file"),
    ],
    ids=["a pipe", "a device", "a terabyte", "a link to nothing", "a folder"],
)
def test_what_has_no_end_is_no_record(ram: Path, make: Callable[[Path], object], why: str) -> None:
    """In a folder that was handed in a record may be a link to anything."""
    path = add(ram, 3, 70.0)
    odd = path.with_name(path.name.replace("seed3", "seed4"))
    make(odd)
    records = (reading.find_record, store.file_bytes, store.read_record, store.read_valid)
    for read in (*records, bundle.read_bundle):  # which a pull request has, perhaps as a link
        with pytest.raises(UserError, match=f"cannot read {odd}.*{why}"):
            read(odd)
    with pytest.raises(UserError, match=why):
        merge_records([ram], ram / "other")


def test_what_has_no_end_is_no_file_of_data(tmp_path: Path) -> None:
    """`bench data verify` reads links of a data root."""
    (tmp_path / "MUTAG.zip").symlink_to("/dev/zero")
    said, bad = download.file_state(DATASETS["MUTAG"], tmp_path)
    assert (said, bad) == (f"{tmp_path}/MUTAG.zip is neither file nor folder: remove it", True)


def test_a_link_whose_answer_was_lost_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of NFS asks again, and hears that the name is taken: by its own link."""
    link = os.link

    def lost(*names: Any) -> None:
        link(*names)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lost)
    check_writable(tmp_path)
    assert files.publish_file(tmp_path / "a", b"ours")
    monkeypatch.setattr(os, "link", link)
    assert not files.publish_file(tmp_path / "a", b"ours")
    assert not files.publish_file(tmp_path / "a", b"theirs")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("number", files.DISK_ERRORS)
def test_an_error_of_the_disk_is_one_line(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(main, "app", fails)
    monkeypatch.setattr(main.sys, "stdout", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main.run_command_line()
    assert (ended.value.code, capsys.readouterr().err.count("\n")) == (2, 1)
