"""Folders of records become one: nothing is replaced, nothing that was edited gets in."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.records.store import SCHEMA, publish_record
from contrastbench.losses import UserError
from made_records import add


def test_the_union_keeps_what_is_equal_and_names_what_is_not(tmp_path: Path) -> None:
    here, there, far = tmp_path / "here", tmp_path / "there", tmp_path / "far"
    first = add(here, 0, 80.0)
    before = first.read_bytes()
    add(there, 0, 80.0, seconds=9.0, environment={"commit": None})
    added = add(there, 1, 81.0)
    other = add(far, 1, 82.0)
    done = merge_records([there, far], here)
    assert (done.added, done.equal, len(done.unequal)) == (1, 1, 1)
    assert first.read_bytes() == before
    target = here / added.relative_to(there)
    assert target.read_bytes() == added.read_bytes()
    assert done.unequal == [f"{target}: metrics.accuracy is 81.0 in it, but 82.0 in {other}"]
    again = merge_records([there, far], here)
    assert (again.added, again.equal, len(again.unequal)) == (0, 2, 1)
    assert merge_records([there], tmp_path / "none", {("graph", "other")}).added == 0
    assert merge_records([there], tmp_path / "all", {("graph", "MUTAG")}).added == 2


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"details": {"validation": 81.0}}, ""),
        ({"metrics": {"accuracy": 80.0, "auroc": 90.0}}, ""),
        ({"details": {"folds": [79.0]}}, "details.folds is [80.0, 80.0] in it, but [79.0]"),
        ({"details": {"folds": [79.0, 80.0]}}, "details.folds.0 is 80.0 in it, but 79.0"),
        ({"status": "diverged"}, "status is 'ok' in it, but 'diverged'"),
    ],
)
def test_what_differs_is_named_and_what_one_release_alone_writes_does_not(
    tmp_path: Path, change: dict[str, object], differing: str
) -> None:
    ours, theirs = add(tmp_path / "a", 0, 80.0), add(tmp_path / "b", 0, 80.0, **change)
    done = merge_records([tmp_path / "b"], tmp_path / "a")
    assert (done.added, done.equal) == (0, not differing)
    assert done.unequal == ([f"{ours}: {differing} in {theirs}"] if differing else [])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda path: path.rename(path.with_name(path.name.replace("seed0", "seed7"))),
            "holds the record of",
        ),
        (lambda path: path.unlink(), "holds no records"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_merged(tmp_path: Path, spoil, message: str) -> None:
    add(tmp_path / "good", 3, 70.0)
    spoil(add(tmp_path / "bad", 0, 80.0))
    with pytest.raises(UserError, match=message) as error:
        merge_records([tmp_path / "good", tmp_path / "bad"], tmp_path / "here")
    assert str(tmp_path / "bad") in str(error.value)
    assert not (tmp_path / "here").exists()


def test_an_invalid_record_is_named_and_the_others_are_merged(tmp_path: Path) -> None:
    path = add(tmp_path / "a", 0, 80.0)
    wrong = path.with_name("0123456789abcdef-seed0.json")
    publish_record({"schema": SCHEMA}, wrong)
    high = add(tmp_path / "a", 1, 1000.0)
    done = merge_records([tmp_path / "a"], tmp_path / "b")
    fix = "delete it and run its cell again"
    assert (done.added, done.equal, done.unequal) == (1, 0, [])
    assert done.invalid == [
        f"{wrong} is an invalid record: it has no domain; {fix}",
        f"{high} is an invalid record: metrics.accuracy is 1000.0 (a percentage, from 0 to 100); "
        f"{fix}",
    ]


def test_an_invalid_record_that_is_there_is_named(tmp_path: Path) -> None:
    add(tmp_path / "a", 0, 80.0)
    path = add(tmp_path / "b", 0, -5.0)
    done = merge_records([tmp_path / "a"], tmp_path / "b")
    assert (done.added, done.equal, done.unequal, len(done.invalid)) == (0, 0, [], 1)
    assert str(path) in done.invalid[0]


@pytest.mark.parametrize(
    ("status", "suffix"), [("ok", ".failed-1"), ("ok", ".0"), ("diverged", ".x"), ("failed", "")]
)
def test_a_record_under_the_name_of_another_status_is_left_out(
    tmp_path: Path, status: str, suffix: str
) -> None:
    """It would be read before the record of its cell, or would stand in its place."""
    ours = add(tmp_path / "a", 0, 80.0)
    theirs = add(tmp_path / "b", 0, 99.0, status=status)
    theirs.rename(theirs.with_name(f"{ours.stem}{suffix}.json"))
    done = merge_records([tmp_path / "b"], tmp_path / "a")
    assert (done.added, len(done.invalid)) == (0, 1)
    assert f"is an invalid record: a record that is {status} has another name;" in done.invalid[0]


def test_a_disk_that_takes_no_record_is_one_line(tmp_path: Path) -> None:
    add(tmp_path / "a", 0, 80.0)
    (tmp_path / "b").touch()
    with pytest.raises(
        UserError, match=r"cannot write .*infonce \(Not a directory\): make room or name another"
    ):
        merge_records([tmp_path / "a"], tmp_path / "b")


def test_records_come_with_the_package(tmp_path: Path) -> None:
    """Each of them is read by `test_store.py`; here are those of two data sets."""
    two = {("graph", "MUTAG"), ("image", "digits")}
    done = merge_records([SHIPPED], tmp_path, two)
    assert done.added > 0
    assert (done.equal, done.unequal) == (0, [])
    assert merge_records([SHIPPED], tmp_path, two).added == 0
