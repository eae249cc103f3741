"""Records of every release are read, for ever."""

import shutil
from pathlib import Path

import pytest

from contrastbench.benchmarks.records import schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.scored import scored_parts
from contrastbench.losses.spec import LossSpec

RELEASES = Path(__file__).with_name("releases")
FOLDS, NOTHING = 10, None
READ = {  # of each kind of record there has been: folds, inner scores, samples, test part, choice
    "first": (2, 0, {}, "folds", NOTHING),
    "graph-without-validation": (FOLDS, 0, {}, "folds", NOTHING),
    "graph-without-inner": (FOLDS, 0, {}, "folds", 78.25),
    "graph": (FOLDS, FOLDS, {"train": 1113}, "folds", 74.71),
    "image": (0, 0, {"train": 1295, "validation": 143, "test": 359}, "fixed", 100.0),
    "sentence": (0, 0, {}, "fixed", 66.08),
    "sentence-transfer": (0, 0, {}, "fixed", NOTHING),
    "tabular": (0, 0, {"train": 1077, "validation": 360, "test": 360}, "redrawn", 94.72),
}


def test_every_release_has_its_record() -> None:
    assert {path.stem for path in RELEASES.iterdir()} == set(READ)
    schemas = {store.read_record(path)["schema"] for path in RELEASES.iterdir()}
    assert schemas == set(range(1, store.SCHEMA + 1)), "keep a record of the new schema, for ever"


@pytest.mark.parametrize("name", READ)
def test_a_record_of_an_earlier_release_is_understood(name: str) -> None:
    record = store.read_record(RELEASES / f"{name}.json")
    schema.check_fields(record, name)
    about = scored_parts(record)
    choice = about.validation if about.validation is None else round(about.validation, 2)
    read = (len(about.folds), len(about.inner), about.samples, about.test_part, choice)
    assert read == READ[name]
    assert record["metrics"][record["main"]] > 0
    assert store.key(record) == record["key"]


@pytest.mark.parametrize("name", sorted(READ.keys() - {"first", "sentence-transfer"}))
def test_a_record_of_an_earlier_release_fills_its_place(name: str, tmp_path: Path) -> None:
    path = RELEASES / f"{name}.json"
    record = store.read_record(path)
    target = store.record_path(tmp_path, record)
    target.parent.mkdir(parents=True)
    shutil.copy(path, target)
    loss = LossSpec(record["loss"], record["params"])
    work = Experiment(record["domain"], record["dataset"], loss, record["recipe"])
    assert list(work.ok_by_seed(tmp_path)) == [record["seed"]]
