"""Records are read once in a process, compared once for each cell; what changes is read anew."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.records import files, packing, store
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.plan import survey
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from made_records import add, made

SEEDS = range(5)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often each file is read and checksummed, a minute from now."""
    counts, read = Counter[Path](), store.read_record

    def counted(path: Path) -> store.Record:
        counts[path] += 1
        return read(path)

    later = time.time_ns() + 60 * 10**9
    monkeypatch.setattr(store, "read_record", counted)
    monkeypatch.setattr(time, "time_ns", lambda: later)
    return counts


def filled(results: Path) -> list[Path]:
    table = load_table("adnce-table5")
    rows = [row for row in table.rows if row.loss not in (None, "none")]
    return [
        add(results, seed, 70.0 + seed, loss=row.loss, dataset="PROTEINS", params=row.params)
        for row in rows
        for seed in SEEDS
    ]


def test_what_is_asked_for_is_read_once_and_of_each_other_cell_one_record(
    tmp_path: Path, reads: Counter[Path]
) -> None:
    wanted, other = (
        [add(tmp_path, seed, 70.0, params={"temperature": temperature}) for seed in SEEDS]
        for temperature in (0.2, 0.3)
    )
    work = Experiment("graph", "MUTAG", LossSpec("infonce", {"temperature": 0.2}), {})
    for _ in range(2):
        assert len(work.records(tmp_path)) == len(SEEDS)
        list(survey([(work, SEEDS)], tmp_path))
    assert reads == dict.fromkeys([*wanted, other[0]], 1)


@pytest.mark.parametrize("packed", [False, True])
def test_of_other_seeds_no_record_is_read(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 2, 11):
        add(tmp_path, seed, 70.0)
    list(packing.pack(tmp_path)) if packed else []
    add(tmp_path, 1, 70.0, status="failed")
    read, parsed = list[int](), store.parsed
    monkeypatch.setattr(store, "parsed", lambda *of, **how: (read.append(1), parsed(*of, **how))[1])
    work = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
    found = [(one["seed"], one["status"]) for one in work.records(tmp_path, 1)]
    assert sorted(found) == [(1, "failed"), (1, "ok")]
    assert [one["status"] for one in work.finished(tmp_path, 1)] == ["ok"]
    assert len(read) == (3 if packed else 4), "a pack never changes"
    with one_moment():
        assert [[len(work.records(tmp_path, seed)) for seed in (2, None, 1)]] == [[1, 4, 2]]


def test_a_cell_is_found_though_its_record_lacks_a_newer_key(
    tmp_path: Path, reads: Counter[Path]
) -> None:
    work = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
    recipe = work.full_recipe.model_dump(mode="json")
    del recipe["permuted"]
    early = [made(tmp_path, work, seed, recipe=recipe) for seed in SEEDS]
    cell = Cell(work, 3, "0" * 64, {})
    found = cell.finished(tmp_path)
    assert found
    assert found[1] == early[3] != cell.path(tmp_path)
    assert reads == {early[3]: 1}


def test_what_is_shown_is_of_one_moment(tmp_path: Path) -> None:
    add(tmp_path, 0, 70.0)
    work = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
    with one_moment():
        assert list(work.ok_by_seed(tmp_path)) == [0]
        add(tmp_path, 1, 70.0)
        assert list(work.ok_by_seed(tmp_path)) == [0]
    assert list(work.ok_by_seed(tmp_path)) == [0, 1]


def test_a_plan_reads_no_dataset_but_its_own(tmp_path: Path, reads: Counter[Path]) -> None:
    add(tmp_path, 0, 70.0)
    other = add(tmp_path, 0, 70.0, dataset="DD")
    assert Costs(tmp_path).of(Experiment("graph", "MUTAG", LossSpec("hcl"), {})) == 2.0
    assert other not in reads


def test_a_cell_is_told_by_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, training_of = [], Experiment.training_of

    def counted(self: Experiment, record: store.Record) -> object:
        compared.append(record["key"])
        return training_of(self, record)

    monkeypatch.setattr(Experiment, "training_of", counted)
    for seed in SEEDS:
        add(tmp_path, seed, 70.0)
        add(tmp_path, seed, 60.0, params={"temperature": 0.3})
    with one_moment():
        for params, accuracy in (({}, [70.0] * 5), ({"temperature": 0.3}, [60.0] * 5)):
            work = Experiment("graph", "MUTAG", LossSpec("infonce", params), {})
            assert [one["metrics"]["accuracy"] for one in work.finished(tmp_path)] == accuracy
    assert len(compared) == len(set(compared)) == 2


@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("keep_times", [False, True])
def test_an_edited_file_is_named_though_it_was_read(tmp_path: Path, keep_times: bool) -> None:
    path = add(tmp_path, 0, 70.0)
    store.read_valid(path)
    about = path.stat()
    while path.stat().st_ctime_ns == about.st_ctime_ns:  # until the disk's clock has ticked
        path.write_text(path.read_text().replace("70.0", "80.0"))
        if keep_times:
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size
    with pytest.raises(UserError, match="was changed after it was published"):
        store.read_valid(path)


def test_a_young_file_is_read_again(tmp_path: Path) -> None:
    # an edit within one tick of the disk's clock leaves size and times as they were
    path = add(tmp_path, 0, 70.0)
    store.read_valid(path)
    path.write_text(path.read_text().replace("70.0", "80.0"))
    with pytest.raises(UserError, match="was changed after it was published"):
        store.read_valid(path)


@pytest.mark.usefixtures("reads")
def test_a_removed_file_is_gone_and_what_a_reader_changes_is_its_own(tmp_path: Path) -> None:
    path = add(tmp_path, 0, 70.0)
    store.read_valid(path)["status"] = "changed"
    assert store.read_valid(path)["status"] == "ok"
    path.unlink()
    with pytest.raises(UserError, match="No such file"):
        store.read_valid(path)


def test_a_merge_checks_each_record_once_and_syncs_each_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = filled(tmp_path / "a")
    checked, check, synced = Counter[Any](), store.parsed, list[Any]()

    def counted(data: bytes, path: object) -> store.Record:
        checked[path] += 1
        return check(data, path)

    monkeypatch.setattr(store, "parsed", counted)
    monkeypatch.setattr(files, "sync_folder", synced.append)
    assert merge_records([tmp_path / "a"], tmp_path / "b").added == len(paths)
    assert sorted(synced) == sorted({path.parent for path in (tmp_path / "b").rglob("*.json")})
    assert checked == dict.fromkeys(paths, 1)
    assert merge_records([tmp_path / "a"], tmp_path / "b").equal == len(paths)
    assert checked == dict.fromkeys(paths, 2), "what is there need not be read as a record"


def test_of_two_data_that_with_more_seeds_come_first(tmp_path: Path) -> None:
    for data, seeds in (("1", 1), ("2", 3), ("3", 2)):
        for seed in range(seeds):
            add(tmp_path, seed, 70.0, data_hash=data * 64)
    found = Experiment("graph", "MUTAG", LossSpec("infonce"), {}).ok_by_data(tmp_path)
    assert [(data[0], len(by_seed)) for data, by_seed in found.items()] == [
        ("2", 3),
        ("3", 2),
        ("1", 1),
    ]
