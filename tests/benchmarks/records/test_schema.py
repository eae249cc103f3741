"""The fields of records: what was ever published is valid, what no run writes is not."""

from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.records import reading, schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from made_records import add, made, record_of

WORK = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
RECORD = record_of(WORK, 0)
RELEASES = Path(__file__).parents[2] / "attack/releases"


@pytest.mark.parametrize("path", sorted(RELEASES.iterdir()), ids=lambda path: path.stem)
def test_records_of_every_release_are_valid(path: Path) -> None:
    schema.check_fields(store.read_record(path), path)


def test_shipped_records_are_valid() -> None:
    found = list(reading.all_records(SHIPPED))
    assert len(found) > 7000, "a warning would be an error"
    for path, record in found:
        store.valid(record, path.parts, path)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"status": "fine"}, "status is 'fine' ('ok', 'diverged', 'oom', 'failed' or 'skipped')"),
        ({"status": 1}, "status is 1 ("),
        ({"params": []}, "params is [] (a valid dictionary)"),
        ({"params": {"mu": float("nan")}}, "params has nan (a number in bounds, or a text"),
        ({"params": {"mu": [10**30]}}, "params has 10000"),
        ({"params": {"mu": "a\nb"}}, r"params has 'a\nb' ("),
        ({"loss": "\x1b[2J"}, r"loss is '\x1b[2J' (a text of one line)"),
        ({"loss": "\u202e"}, r"loss is '\u202e' (a text of one line)"),
        ({"recipe": {"score_at": 5}}, "recipe.score_at is 5"),
        ({"metrics": None}, "metrics is None (a valid dictionary)"),
        ({"metrics": {"accuracy": "high"}}, "metrics.accuracy is 'high' (a valid number)"),
        ({"metrics": {"accuracy": True}}, "metrics.accuracy is True (a valid number)"),
        ({"metrics": {"accuracy": float("nan")}}, "metrics.accuracy is nan (a finite number)"),
        ({"metrics": {"accuracy": 1e308}}, "metrics.accuracy is 1e+308 ("),
        ({"metrics": {"accuracy": -5}}, "metrics.accuracy is -5 (a percentage, from 0 to 100)"),
        ({"metrics": {"accuracy": 1000}}, "metrics.accuracy is 1000 (a percentage, from 0 to"),
        ({"metrics": {"loss": 5.0}}, "main is 'accuracy' (one of the metrics)"),
        ({"seconds": "1"}, "seconds is '1' (a valid number)"),
        ({"seconds": -1.0}, "seconds is -1.0 (greater than or equal to 0)"),
        ({"seed": 2**63}, "seed is 9223372036854775808 (less than 4294967296)"),
        ({"environment": "mine"}, "environment is 'mine' (a valid dictionary)"),
        ({"environment": {"versions": ["2"]}}, "environment.versions is ['2']"),
        ({"details": {"folds": [None]}}, "details.folds.0 is None (a valid number)"),
        ({"details": {"learned": [1.0]}}, "details.learned is [1.0] (a valid dictionary)"),
        ({"details": {"learned": {"t": 1e200}}}, "details.learned has 1e+200 (a number in"),
        ({"details": {"test_part": "redrawn", "samples": {"train": 3}}}, "details.samples is {"),
        ({"key": "0" * 15}, "key is '000000000000000' ("),
        ({"key": "g" * 64}, "key is 'gggggggg"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], wrong: str) -> None:
    with pytest.raises(schema.InvalidRecord) as error:
        schema.check_fields(RECORD | change, "FILE")
    assert str(error.value).startswith(f"FILE is an invalid record: {wrong}")
    assert str(error.value).endswith("; delete it and run its cell again")


@pytest.mark.parametrize("name", ["metrics", "main", "seconds", "details", "environment", "key"])
def test_what_lacks_is_named(name: str) -> None:
    with pytest.raises(schema.InvalidRecord, match=f"FILE is an invalid record: it has no {name};"):
        schema.check_fields({key: value for key, value in RECORD.items() if key != name}, "FILE")


@pytest.mark.parametrize(
    ("domain", "metrics"),
    [
        ("sentence", {"accuracy": 50, "STS12": -100, "avg": -1.0, "SICKR": 0, "spearman@2": -3}),
        ("image", {"accuracy": 100.00000762939453, "nmi": 0.0}),
        ("a plugin", {"accuracy": -0.5, "perplexity": 1e6}),
    ],
)
def test_bounds_are_those_of_the_metric(domain: str, metrics: dict[str, float]) -> None:
    schema.check_fields(RECORD | {"domain": domain, "metrics": metrics}, "FILE")


def test_an_invalid_record_is_left_out_of_lists_and_refused_by_itself(tmp_path: Path) -> None:
    add(tmp_path, 0, 70.0)
    path = add(tmp_path, 1, 1000.0)
    made(tmp_path, WORK, 2, seconds="long")
    for read in (WORK.records, lambda results: list(reading.all_records(results))):
        with pytest.warns(UserWarning, match="left out: .* is an invalid record") as warned:
            assert len(read(tmp_path)) == 1
        assert sum(str(path) in str(warning.message) for warning in warned) == 1
    with pytest.raises(UserError, match="a percentage, from 0 to 100"):
        reading.find_record(path)
