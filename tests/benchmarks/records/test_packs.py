"""Packs: the records that they were made of, read as loose ones are, never lost, never altered."""

import lzma
import os
import random
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from contrastbench.benchmarks.records import packing, packs, reading, schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from counts import times
from damaged import damages, flipped
from made_records import add, record_of

LOSSES = ("infonce", "adnce", "infonce + 0.5*dar")
Files = dict[str, bytes]


def filled(results: Path, seeds: int = 3) -> Path:
    """Records of two datasets, three losses and two temperatures, and a failed try."""
    for dataset in ("MUTAG", "DD"):
        for loss in LOSSES:
            for temperature in (0.2, 0.3):
                key = "infonce.temperature" if "+" in loss else "temperature"
                for seed in range(seeds):
                    about = {"loss": loss, "dataset": dataset, "params": {key: temperature}}
                    add(results, seed, 60 + 10 * temperature + seed, **about)
    add(results, 9, 50.0, status="failed")
    return results


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("loose"))


@pytest.fixture
def results(loose: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(loose, tmp_path / "results"))


def contents(results: Path) -> Files:
    return {
        path.relative_to(results).as_posix(): path.read_bytes()
        for path in (results / "runs").rglob("*.*")
        if path.is_file()
    }


def records(results: Path) -> dict[str, store.Record]:
    return {
        path.relative_to(results).as_posix(): record
        for path, record in reading.all_records(results)
    }


def packed(results: Path) -> list[Path]:
    return sorted(results.glob("runs/*/*/packed-*.sqlite"))


@pytest.mark.parametrize("block", [2**10, 2**18])
def test_packed_and_unpacked_files_are_what_they_were(
    results: Path, loose: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "BLOCK_BYTES", block)
    before = contents(results)
    lines = list(packing.pack(results))
    assert [line.partition(":")[0] for line in lines] == ["graph/DD", "graph/MUTAG"]
    failed = [name for name in before if "failed" in name]
    assert sorted(contents(results)) == sorted(
        [*failed, *(path.relative_to(results).as_posix() for path in packed(results))]
    )
    assert records(results) == records(loose)
    for folder in results.glob("runs/*/*/*/"):
        if not any(folder.iterdir()):
            folder.rmdir()  # a repository has no empty folders
    assert records(results) == records(loose)
    assert list(packing.unpack(results)) == [
        "graph/DD: 18 records are files again",
        "graph/MUTAG: 18 records are files again",
    ]
    assert contents(results) == before
    assert not list(packing.unpack(results))


def test_packing_again_adds_and_leaves_one_pack(results: Path) -> None:
    list(packing.pack(results))
    first, names = packed(results), sorted(records(results))
    assert not list(packing.pack(results)), "nothing new, nothing done"
    assert packed(results) == first
    new = add(results, 7, 70.0)
    (line,) = packing.pack(results)
    assert line.startswith("graph/MUTAG: 19 records in packed-")
    assert not new.exists()
    assert len(packed(results)) == 2
    assert sorted(records(results)) == sorted([*names, new.relative_to(results).as_posix()])


def test_the_same_records_are_the_same_bytes_and_found_as_in_files(
    results: Path, loose: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(results, tmp_path / "other"))
    list(packing.pack(results))
    list(packing.pack(other))
    assert contents(results) == contents(other)
    for name, record in records(loose).items():
        assert reading.find_record(results / name) == record
    nothing = results / "runs/graph/MUTAG/adnce/0123456789abcdef-seed0.json"
    assert reading.find_record(nothing) is None
    assert reading.find_record(nothing.with_name("odd.json")) is None


PLACES = ("loose", "first pack", "second pack", "loose and first pack", "both packs", "all")


def spread(source: Path, target: Path, places: dict[str, str]) -> None:
    """The source's records in the places that are named for them."""
    for pack in ("first pack", "second pack"):
        part = target.with_name(f"{target.name}-{pack}")
        copy(source, part, {name for name, place in places.items() if pack in expanded(place)})
        if part.exists():
            list(packing.pack(part))
            for path in packed(part):
                (target / path.relative_to(part)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / path.relative_to(part))
    copy(source, target, {name for name, place in places.items() if "loose" in expanded(place)})


def expanded(place: str) -> str:
    return {"both packs": "first pack second pack", "all": " ".join(PLACES[:3])}.get(place, place)


def copy(source: Path, target: Path, names: set[str]) -> None:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)


@given(data=st.data())
@settings(
    max_examples=times(10, least=5),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_any_split_over_packs_and_files_reads_and_merges_alike(
    loose: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    everything = records(loose)
    finished = [name for name, record in everything.items() if record["status"] == "ok"]
    places = {name: data.draw(st.sampled_from(PLACES)) for name in finished}
    places |= {name: "loose" for name in everything if name not in finished}
    mixed = tmp_path_factory.mktemp("mixed") / "results"
    spread(loose, mixed, places)
    assert records(mixed) == everything
    for source, target in ((mixed, loose), (loose, mixed)):
        copied = Path(shutil.copytree(target, mixed.with_name(f"into-{target.name}")))
        done = merge_records([source], copied)
        assert (done.added, done.unequal) == (0, [])
        assert records(copied) == everything
    fresh = mixed.with_name("fresh")
    assert merge_records([mixed], fresh).added == len(everything)
    assert records(fresh) == everything
    list(packing.pack(mixed))
    assert len(packed(mixed)) == 2
    list(packing.unpack(mixed))
    assert contents(mixed) == contents(loose)


def contradicting(results: Path, tmp_path: Path) -> Path:
    """The results packed, and beside them a record that differs from its packed one."""
    path = next(results.glob("runs/graph/MUTAG/adnce/*-seed1.json"))
    list(packing.pack(results))
    record = reading.find_record(path)
    assert record
    store.publish_record({**record, "metrics": {"accuracy": 1.0}}, path)
    return path


def test_what_contradicts_is_named_and_nobody_wins(results: Path, tmp_path: Path) -> None:
    path = contradicting(results, tmp_path)
    pack = packed(results)[1]
    with pytest.raises(UserError) as error:
        records(results)
    assert str(error.value).startswith(f"{path}: metrics.accuracy is 6")
    assert str(error.value).endswith(f" in {pack}, but 1.0 in {path}: remove one of them")
    for do in (packing.pack, packing.unpack):
        with pytest.raises(UserError, match="remove one of them"):
            list(do(results))
        assert path.exists()
        assert pack.exists()


def test_a_merge_of_packs_names_what_is_unequal_and_adds_the_rest(
    results: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    path = next(results.glob("runs/graph/MUTAG/adnce/*-seed1.json"))
    name = path.relative_to(results)
    store.publish_record({**store.read_record(path), "metrics": {"accuracy": 1.0}}, here / name)
    equal = next(results.glob("runs/graph/MUTAG/infonce/*-seed2.json")).relative_to(results)
    copy(results, here, {equal.as_posix()})
    list(packing.pack(here))
    list(packing.pack(results))
    done = merge_records([results], here)
    assert (done.added, done.equal, len(done.unequal)) == (35, 1, 1)
    assert done.unequal[0].startswith(f"{here / name}: metrics.accuracy is 1.0 in it, but 6")
    assert done.unequal[0].endswith(f"in {packed(results)[1]}")
    own = reading.find_record(here / name)
    assert own
    assert own["metrics"] == {"accuracy": 1.0}
    assert len(records(here)) == 37
    again = merge_records([results], here)
    assert (again.added, again.equal, len(again.unequal)) == (0, 36, 1)


def altered(data: bytes) -> Iterator[bytes]:
    """The bytes cut, longer, or with a bit flipped, also in SQLite's header of a hundred."""
    rng = random.Random(0)
    yield from damages(data, 60, rng)
    yield from (head + data[100:] for head in flipped(data[:100], 15, rng))
    yield data + b"\0"


def test_forged_bytes_under_their_own_name_are_one_line_too(results: Path) -> None:
    """Whoever forges a pack can name it rightly: what SQLite and xz meet is bounded as well.

    A forger can leave records out, as anybody can who packs fewer. None reads as another one.
    """
    list(packing.pack(results))
    path = packed(results)[1]
    everything = records(results)
    forged = list(altered(path.read_bytes()))
    path.unlink()
    for what, data in enumerate(forged):
        path.write_bytes(data)
        named = named_pack(path)
        path.unlink()
        found = records_or_error(results)
        if isinstance(found, str):
            assert str(named) in found, what
            assert "\n" not in found
        else:  # a byte that no record is made of, such as SQLite's count of changes or of rows
            assert found.items() <= everything.items(), what
        named.unlink()


def records_or_error(results: Path) -> dict[str, store.Record] | str:
    try:
        return records(results)
    except UserError as error:
        return str(error)


LARGE = b" " * (store.MAX_RECORD_BYTES + 1)
BOMB = lzma.compress(LARGE, check=lzma.CHECK_NONE)
WIDE = bytearray(lzma.compress(b"x", check=lzma.CHECK_NONE))
WIDE[16] = 36  # a dictionary of a gibibyte
WIDE[20:24] = zlib.crc32(WIDE[12:20]).to_bytes(4, "little")
OLD_BOMB = zlib.compress(LARGE, wbits=-15)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE blocks SET xz = zeroblob(17000000)", "too big"),
        ("UPDATE blocks SET xz = (SELECT x FROM bomb.b)", "cut off or too long"),
        ("UPDATE blocks SET xz = (SELECT wide FROM bomb.b)", "not a pack"),
        ("DELETE FROM blocks", "not a pack"),
        ("UPDATE files SET block = 'text'", "of another type"),
        ("UPDATE files SET start = start + 1", "is not a record"),
        ("UPDATE files SET name = replace(name, 'seed', 'seed1')", "holds the record of"),
        ("UPDATE files SET name = CAST(name AS BLOB)", "not a pack"),
        ("UPDATE files SET name = '../' || name", "no record's file"),
        ("UPDATE files SET folder = '/tmp/graph/MUTAG/' || folder", "no record's file"),
        ("UPDATE files SET folder = '..'", "no record's file"),
        ("UPDATE files SET folder = ''", "a record lacks its cell"),
        ("UPDATE files SET folder = 'a' || folder", "holds the record of graph/MUTAG"),
        ("DROP TABLE files", "its tables are others"),
        ("ALTER TABLE files ADD COLUMN more", "its tables are others"),
        (
            "PRAGMA user_version = 4",
            "has pack version 4, but this contrastbench reads up to 3: upgrade",
        ),
        ("PRAGMA user_version = 1", "its tables are others"),
    ],
)
def test_a_hostile_pack_is_one_line_in_bounded_memory(
    results: Path, statement: str, message: str
) -> None:
    list(packing.pack(results))
    named = forged(packed(results)[1], statement, BOMB)
    with pytest.raises(UserError, match=message) as error:
        both_ways(results)
    assert str(named) in str(error.value)


def named_pack(path: Path) -> Path:
    """Give a pack the name of its bytes, beside its old one."""
    named = path.with_name(packs.pack_name(path))
    return Path(shutil.copyfile(path, named)) if named != path else path


def forged(path: Path, statement: str, bomb: bytes) -> Path:
    """Change the tables of a pack, and give it the name of its new bytes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("ATTACH ':memory:' AS bomb")
        base.execute("CREATE TABLE bomb.b (x, wide)")
        base.execute("INSERT INTO bomb.b VALUES (?, ?)", (bomb, WIDE))
        base.execute(statement)
    named = named_pack(path)
    path.unlink()
    return named


def test_a_record_whose_key_is_another_cells_is_refused(results: Path) -> None:
    """Folder, name and record agree, and claim a key that is not theirs."""
    work = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
    record = {**record_of(work, 7), "key": "0" * 64}
    store.publish_record(record, work.folder(results) / "0000000000000000-seed7.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "check_key", lambda *_: None)
        list(packing.pack(results))
    with pytest.raises(UserError, match=r"packed-.*: infonce/0{16}-seed7.json holds the rec"):
        list(packing.unpack(results))


def test_invalid_records_stay_where_they_are(results: Path) -> None:
    """Also those that an earlier release has packed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "check_fields", lambda *_: None)
        old = add(results, 6, 1000.0)
        list(packing.pack(results))
    new, good = add(results, 7, -5.0), add(results, 8, 70.0)
    with pytest.warns(UserWarning, match="is an invalid record") as warned:
        (line,) = packing.pack(results)
    assert line.startswith("graph/MUTAG: 1 record in packed-")
    messages = " ".join(str(warning.message) for warning in warned)
    assert old.name in messages
    assert str(new) in messages
    assert new.exists()
    assert not good.exists()
    assert len(packed(results)) == 3
    with pytest.warns(UserWarning, match="is an invalid record"):
        assert not list(packing.pack(results)), "nothing new, nothing done"


def with_auroc(path: Path, **change: Any) -> store.Record:
    record = store.read_record(path)
    return {**record, "metrics": {**record["metrics"], "auroc": 77.0}, **change}


def test_of_two_records_that_agree_the_fuller_one_is_kept(results: Path) -> None:
    """One of an early release has fewer metrics, and may come in a pack."""
    path = next(results.glob("runs/*/*/infonce/*-seed0.json"))
    bare, full = path.read_bytes(), store.serialise_record(with_auroc(path))
    list(packing.pack(results))
    name = path.relative_to(results).as_posix()
    for now in (full, bare):  # beside a pack of the other one
        path.write_bytes(now)
        assert "auroc" in records(results)[name]["metrics"]
        list(packing.pack(results))
        assert not path.exists()
        assert "auroc" in records(results)[name]["metrics"]


@pytest.mark.filterwarnings("ignore:left out")
def test_a_packed_record_is_no_file_again_where_a_worse_one_is(results: Path) -> None:
    path = next(results.glob("runs/*/*/infonce/*-seed0.json"))
    bare, full = path.read_bytes(), store.serialise_record(with_auroc(path))
    invalid = store.serialise_record(with_auroc(path, seconds=-1.0))
    path.write_bytes(full)
    list(packing.pack(results))
    for worse in (bare, invalid):
        path.write_bytes(worse)
        with pytest.raises(UserError, match=r"seed0.json lacks what .* has: remove it"):
            list(packing.unpack(results))
        assert packed(results)
    path.unlink()
    list(packing.unpack(results))
    assert path.read_bytes() == full


def both_ways(results: Path) -> None:
    Experiment("graph", "MUTAG", LossSpec("adnce"), {}).records(results)
    records(results)


def test_what_is_no_file_is_one_line(results: Path) -> None:
    folder = results / "runs/graph/MUTAG"
    (folder / "packed-0123456789abcdef.sqlite").mkdir()
    with pytest.raises(UserError, match="torn or was altered"):
        records(results)
    (folder / "packed-0123456789abcdef.sqlite").rmdir()
    os.mkfifo(folder / "packed-0123456789abcdef.sqlite")
    with pytest.raises(UserError, match="torn or was altered"):
        records(results)


@pytest.fixture(params=["711c9cb2875010df", "e7f376972d531f0e"])
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Packs are published like records: releases wrote these, of versions 1 and 2."""
    folder = tmp_path / "runs/graph/MUTAG"
    folder.mkdir(parents=True)
    return Path(shutil.copy(Path(__file__).with_name(f"packed-{request.param}.sqlite"), folder))


def test_a_pack_of_an_early_version_stays_readable(old: Path, tmp_path: Path) -> None:
    before = records(tmp_path)
    assert [record["metrics"] for record in before.values()] == [{"accuracy": 87.5}] * 2
    merge_records([tmp_path], tmp_path / "other")
    list(packing.unpack(tmp_path))
    files_of_old = contents(tmp_path)
    list(packing.pack(tmp_path))
    assert packed(tmp_path) != [old], "it has the new format now"
    assert records(tmp_path) == records(tmp_path / "other") == before
    list(packing.unpack(tmp_path))
    assert contents(tmp_path) == files_of_old


@pytest.mark.parametrize(
    ("old", "statement", "message"),
    [
        ("711c9cb2875010df", "UPDATE dictionary SET deflated = (SELECT x FROM bomb.b)", "too long"),
        ("711c9cb2875010df", "DELETE FROM dictionary", "not a pack"),
        ("711c9cb2875010df", "UPDATE records SET file = zeroblob(17000000)", "too big"),
        ("e7f376972d531f0e", "DELETE FROM cells", "a record lacks its cell"),
        ("e7f376972d531f0e", "UPDATE cells SET key = 'x' || key", "no record's file"),
        ("e7f376972d531f0e", "UPDATE cells SET folder = '..'", "no record's file"),
    ],
    indirect=["old"],
)
def test_a_hostile_pack_of_an_early_version_is_one_line(
    old: Path, tmp_path: Path, statement: str, message: str
) -> None:
    named = forged(old, statement, OLD_BOMB)
    with pytest.raises(UserError, match=message) as error:
        records(tmp_path)
    assert str(named) in str(error.value)


def test_a_damaged_record_is_not_packed_and_nothing_is_removed(results: Path) -> None:
    path = next(results.glob("runs/graph/MUTAG/adnce/*-seed1.json"))
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    before = contents(results)
    with pytest.raises(UserError, match="was changed after it was published") as error:
        list(packing.pack(results))
    assert str(path) in str(error.value)
    after = contents(results)
    assert {name: data for name, data in before.items() if "MUTAG" in name}.items() <= after.items()


def test_two_do_not_pack_at_once(results: Path) -> None:
    with FileLock(results / "runs" / packing.LOCK), pytest.raises(UserError) as error:
        list(packing.pack(results))
    assert str(error.value) == f"somebody else packs {results}: wait until that has ended"
    assert packed(results) == []


def test_a_merge_names_what_is_wrong_in_a_pack(results: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "check_fields", lambda *_: None)
        wrong = add(results, 6, 1000.0)
        list(packing.pack(results))
    done = merge_records([results], tmp_path / "other")
    assert (done.added, len(done.invalid)) == (37, 1)
    assert f"{wrong.parent.name}/{wrong.name} is an invalid record" in done.invalid[0]
    assert len(records(tmp_path / "other")) == 37


def test_the_command_packs_and_unpacks(bench, results: Path) -> None:
    code, out, _ = bench("pack", "--results", str(results))
    assert code == 0
    assert "graph/MUTAG: 18 records in packed-" in out
    code, out, _ = bench("pack", "--undo", "--results", str(results))
    assert (code, out.splitlines()[1]) == (0, "graph/MUTAG: 18 records are files again")
    code, out, _ = bench("pack", "--undo", "--results", str(results))
    assert (code, out) == (0, f"no packs in {results}: all records are files\n")
    bench("pack", "--results", str(results))
    code, out, _ = bench("pack", "--results", str(results))
    assert (code, out) == (0, f"all finished records in {results} are packed already\n")
    code, _, err = bench("pack", "--results", str(results / "nothing"))
    assert (code, err) == (
        2,
        f"bench: {results / 'nothing'} holds no records: name a folder that holds runs/\n",
    )
