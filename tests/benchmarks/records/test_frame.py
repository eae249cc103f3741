"""Frames: what is read of a pack through one is what the pack says, and none is ever trusted."""

import json
import marshal
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contrastbench.benchmarks.records import frame, packing, packs, reading, schema, store
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.losses import UserError
from damaged import damages
from made_records import add


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two packs of records, one of which is invalid."""
    for dataset in ("MUTAG", "DD"):
        for loss in ("infonce", "infonce + 0.5*dar"):
            for seed in range(3):
                add(tmp_path, seed, 60.0 + seed, dataset=dataset, loss=loss)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "check_fields", lambda *_: None)
        add(tmp_path, 5, 1000.0)
        list(packing.pack(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(frame, "cache_folder", lambda: tmp_path)
    return tmp_path / "frames"


def found(results: Path) -> str:
    """All that a new process reads, to the order of fields."""
    packs._opened.clear()
    with pytest.warns(UserWarning, match="left out: .*metrics.accuracy is 1000.0"):
        records = [(str(path), record) for path, record in reading.all_records(results)]
    return json.dumps(records)


def frames(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_records_are_the_same_with_and_without_frames(
    results: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = found(results)
    assert not [*frames(folder)], "a run reads single records"
    with one_moment():
        assert found(results) == plain
    assert [path.parent.name for path in sorted(frames(folder))] == ["DD", "MUTAG"]
    read, block = list[str](), packs.Pack.read_block

    def counted(pack: packs.Pack, number: int) -> bytes:
        read.append(pack.path.parent.name)
        return block(pack, number)

    monkeypatch.setattr(packs.Pack, "read_block", counted)
    with one_moment():
        assert found(results) == plain
    assert read == ["MUTAG"], "only what is invalid is read once more"


def test_a_damaged_frame_is_made_anew(results: Path, folder: Path) -> None:
    plain = found(results)
    with one_moment():
        found(results)
    path = next(frames(folder))
    whole = path.read_bytes()
    for data in [*damages(whole, 20, random.Random(0))][::4]:
        path.write_bytes(data)
        with one_moment():
            assert found(results) == plain
        assert path.read_bytes() == whole


def test_other_code_or_another_folder_makes_another_frame(
    results: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with one_moment():
        found(results)
    known = {*frames(folder)}
    monkeypatch.setattr(frame, "rules", lambda: "changed")
    with one_moment():
        found(results)
    assert len({*frames(folder)} - known) == len(known)
    (pack,) = results.glob("runs/graph/MUTAG/packed-*")
    shutil.copy(pack, results / "runs/graph/DD")
    with one_moment(), pytest.raises(UserError, match="holds the record of graph/MUTAG"):
        list(reading.all_records(results))


def test_a_cache_that_cannot_be_written_is_done_without(results: Path, folder: Path) -> None:
    plain = found(results)
    folder.write_text("in the way")
    with one_moment():
        assert found(results) == plain


def test_frames_of_a_month_ago_go_when_one_is_made(results: Path, folder: Path) -> None:
    with one_moment():
        found(results)
    path = next(frames(folder))
    old, young = path.with_name("old"), path.with_name("young")
    for other, days in ((old, 31), (young, 29)):
        other.write_bytes(b"")
        os.utime(other, (time.time() - days * 24 * 3600,) * 2)
    path.unlink()
    with one_moment():
        found(results)
    assert path.exists()
    assert young.exists()
    assert not old.exists()


def test_values_keep_their_types_and_their_order() -> None:
    record: store.Record = {  # type: ignore[typeddict-item]
        "seed": 1, "seconds": 1.0, "details": {"b": [1, 1.0, True, None, -0.0], "a": {}},
        "metrics": {"x": 0.1 + 0.2, "y": 1e-300}, "main": "é\n\u2028",
    }  # fmt: skip
    records = {"loss": {"one": record, "two": record}, "other": {"one": record}}
    again = marshal.loads(frame.framed(records))
    assert json.dumps(again) == json.dumps(records)
    assert again["loss"]["one"]["metrics"] is again["other"]["one"]["metrics"]
