"""Records: whole or not there, never overwritten, never edited unseen, and their fields."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contrastbench.benchmarks.records import experiment, files, reading, schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.records.scored import packed_bits, sample_interval
from contrastbench.benchmarks.records.store import SCHEMA, key, publish_record, read_record
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from made_records import add, made, record_of

IDENTITY = {
    "domain": "graph",
    "dataset": "MUTAG",
    "loss": "adnce",
    "loss_code": "",
    "params": {"mu": 0.7},
    "recipe": {"epochs": 20},
    "protocol": "graphcl/1",
    "data_hash": "0" * 64,
    "seed": 3,
}
RECORD = {"schema": SCHEMA, "status": "ok", "metrics": {"accuracy": 87.5}, "dataset": "MÜTAG"}


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "image"},
        {"dataset": "DD"},
        {"loss": "infonce"},
        {"loss_code": "2" * 64},
        {"params": {"mu": 0.8}},
        {"recipe": {"epochs": 21}},
        {"protocol": "graphcl/2"},
        {"data_hash": "1" * 64},
    ],
)
def test_the_key_covers_everything_that_can_change_a_number(change: dict) -> None:
    assert key(IDENTITY | change) != key(IDENTITY)


def test_seeds_share_a_key_and_have_their_own_files() -> None:
    other, results = IDENTITY | {"seed": 4}, Path("r")
    assert key(other) == key(IDENTITY)
    assert store.record_path(results, other) != store.record_path(results, IDENTITY)
    name = f"{key(IDENTITY)[:16]}-seed3.json"
    assert str(store.record_path(results, IDENTITY)) == f"r/runs/graph/MUTAG/adnce/{name}"


def test_a_key_does_not_depend_on_the_order_of_parameters() -> None:
    a, b = ({"mu": 1.0, "sigma": 2.0}, {"sigma": 2.0, "mu": 1.0})
    assert key(IDENTITY | {"params": a}) == key(IDENTITY | {"params": b})


def test_a_loss_in_a_file_has_a_tame_folder() -> None:
    path = store.record_path(Path("r"), IDENTITY | {"loss": "../my losses/a.py:Mine"})
    assert path.parent == Path("r/runs/graph/MUTAG/.._my_losses_a.py_Mine")


@pytest.mark.parametrize("name", ["a" * 400, "ü" * 200, "infonce + 0.5*dar + " * 40])
def test_a_long_name_is_cut_and_hashed(name: str, tmp_path: Path) -> None:
    long = {**RECORD, **IDENTITY, "loss": name}
    others = [
        store.loss_folder(tmp_path, "graph", "MUTAG", other) for other in (name[:-1], name + "a")
    ]
    assert publish_record(long, store.record_path(tmp_path, long))
    assert store.loss_folder(tmp_path, "graph", "MUTAG", name) not in others
    for size in (240, 300):
        assert len(store.file_name("a" * size)) == 240, "names that fit stay what they are"


def test_a_value_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    thirds = [10.0**power / 3 for power in range(-320, 309)]
    edges = [5e-324, sys.float_info.min, sys.float_info.max, -0.0, 0.1 + 0.2, 2**70, -(2**63)]
    record = {**RECORD, "values": thirds + edges, "text": 'quote " \\ \n \u2028 é 😀', "none": None}
    publish_record(record, tmp_path / "x.json")
    assert repr(read_record(tmp_path / "x.json")) == repr(
        json.loads(json.dumps(record, sort_keys=True))
    )


def test_of_many_runners_one_publishes(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(
            pool.map(
                lambda i: publish_record({**RECORD, "runner": i}, tmp_path / "x.json"), range(32)
            )
        )
    assert sum(won) == 1
    assert read_record(tmp_path / "x.json")["runner"] == won.index(True)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.replace("87.5", "97.5"), "was changed after it was published"),
        (lambda t: t[: len(t) // 2], "is not a record"),
        (lambda t: "", "is not a record"),
        (lambda t: "[1]", "is not a record"),
        (lambda t: "[" * 100_000, "is not a record"),
        (lambda t: t.replace("87.5", "NaN"), "is not a record"),
        (lambda t: t.replace("87.5", "1e999"), "is not a record"),
        (lambda t: t.replace(f'"schema": {SCHEMA}', f'"schema": "{SCHEMA}"'), "is not a record"),
        (lambda t: t.replace(f'"schema": {SCHEMA}', f'"schema": {SCHEMA + 1}'), "upgrade"),
    ],
)
def test_what_is_wrong_with_a_record_is_named(tmp_path: Path, edit, message: str) -> None:
    path = tmp_path / "x.json"
    publish_record(RECORD, path)
    path.write_text(edit(path.read_text()))
    with pytest.raises(UserError, match=message) as error:
        read_record(path)
    assert str(path) in str(error.value)


WRITER = """
import sys
from pathlib import Path
from contrastbench.benchmarks.records import files
with files.temporary_file(Path(sys.argv[1]), b"half a record") as path:
    print(path, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_a_living_one_s_stays(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "graph" / "motifs" / "infonce"
    folder.mkdir(parents=True)
    writers = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", WRITER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    dead, living = (
        Path(str(writer.stdout and writer.stdout.readline()).strip()) for writer in writers
    )
    others = [
        folder / ".elsewhere.1.ab.tmp",
        folder / f".{files.host()}.x.ab.tmp",
        folder / "a.tmp",
    ]
    for path in others:
        path.touch()
    writers[0].send_signal(signal.SIGKILL)
    writers[0].communicate()
    assert dead.exists()
    assert living.exists()
    files.publish_file(folder / "next", b"of the next writer")
    (folder / "next").unlink()
    assert sorted(folder.iterdir()) == sorted([living, *others])
    writers[1].communicate()
    assert sorted(folder.iterdir()) == sorted(others)


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert files.process_exists(1)


def test_a_name_that_leads_nowhere_is_taken(tmp_path: Path) -> None:
    """What is published there would be no file, and nobody would miss it."""
    (tmp_path / "a").symlink_to(tmp_path / "nothing")
    assert not files.publish_file(tmp_path / "a", b"a record")
    assert not (tmp_path / "a").exists()


def test_an_export_is_of_its_own_cell_alone(tmp_path: Path) -> None:
    record = record_of(Experiment("graph", "MUTAG", LossSpec("infonce"), {}), 0)
    assert not experiment.holds(tmp_path, record)
    (tmp_path / experiment.CELL_FILE).write_text(json.dumps(record))
    assert experiment.holds(tmp_path, record)
    assert not experiment.holds(tmp_path, {**record, "seed": 1})


Bench = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("right", ["1101", "00010", "01111"])
def test_the_interval_is_that_of_all_draws_with_replacement(right: str) -> None:
    bits = [digit == "1" for digit in right]
    drawn = [100 * np.mean(draw) for draw in product(bits, repeat=len(bits))]
    expected = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    found = sample_interval({"details": {"right": packed_bits(bits)}})
    assert found == pytest.approx(tuple(expected))


def test_nothing_is_said_without_bits_or_where_all_are_alike() -> None:
    for bits in ([], [True] * 9, [False]):
        assert sample_interval({"details": {"right": packed_bits(bits)}}) is None
    assert sample_interval({"details": {}}) is None


@pytest.mark.parametrize("domain", ["tabular", "image"])
def test_a_record_keeps_which_test_samples_are_right(domain: str, bench: Bench) -> None:
    words = ["run", "--domain", domain, "--loss", "none", "--tiny"]
    record = json.loads(bench(*words, "--json")[1])
    right = f"{int(record['details']['right'], 16):b}"[1:]
    assert len(right) == record["details"]["samples"]["test"]
    assert 100 * right.count("1") / len(right) == pytest.approx(record["metrics"]["accuracy"])
    low, high = sample_interval(record)
    assert f"; by its test samples {low:.2f} to {high:.2f} (kept" in bench(*words)[1]


WORK = Experiment("graph", "MUTAG", LossSpec("infonce"), {})
WHOLE = record_of(WORK, 0)
LACKS, REQUIRED = object(), ("metrics", "main", "seconds", "details", "environment", "key")


def test_shipped_records_are_valid() -> None:
    found = list(reading.all_records(SHIPPED))
    assert len(found) > 4000, "a warning would be an error"
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
        *(({name: LACKS}, f"it has no {name}; delete") for name in REQUIRED),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], wrong: str) -> None:
    record = {name: value for name, value in (WHOLE | change).items() if value is not LACKS}
    with pytest.raises(schema.InvalidRecord) as error:
        schema.check_fields(record, "FILE")
    assert str(error.value).startswith(f"FILE is an invalid record: {wrong}")
    assert str(error.value).endswith("; delete it and run its cell again")


@pytest.mark.parametrize(
    ("domain", "metrics"),
    [
        ("sentence", {"accuracy": 50, "STS12": -100, "avg": -1.0, "SICKR": 0, "spearman@2": -3}),
        ("image", {"accuracy": 100.00000762939453, "nmi": 0.0}),
        ("a plugin", {"accuracy": -0.5, "perplexity": 1e6}),
    ],
)
def test_bounds_are_those_of_the_metric(domain: str, metrics: dict[str, float]) -> None:
    schema.check_fields(WHOLE | {"domain": domain, "metrics": metrics}, "FILE")


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
