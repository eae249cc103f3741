"""Records: whole or not there, never overwritten, never edited unseen."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import SCHEMA, key, publish_record, read_record
from contrastbench.losses import UserError

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


def test_published_once(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    assert publish_record(RECORD, path)
    assert not publish_record({**RECORD, "status": "failed"}, path)
    assert read_record(path) == RECORD
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


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


def test_not_a_number_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        publish_record({**RECORD, "metrics": {"accuracy": float("nan")}}, tmp_path / "x.json")
    assert not any(tmp_path.iterdir())


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
