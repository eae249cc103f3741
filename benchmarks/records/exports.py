"""Encoders that were exported, found by the record of their cell, which holds no weights."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.store import Record
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.errors import UserError
from contrastbench.losses.spec import LossSpec

CELL = "cell.json"  # in an export: what it is of
FOLDER = "encoders"  # beside runs/: where the exports of records are looked for


def note(folder: Path, identity: Record) -> None:
    """Say in an export which cell it is of."""
    (folder / CELL).write_text(store.canonical(identity) + "\n", encoding="utf-8")


def of_record(path: Path) -> Path:
    """The export of a record, from the folder `encoders` beside its `runs`.

    Raises:
        UserError: there is no such record, or no export of its cell.
    """
    whole = path.absolute()
    record = reading.find(whole)
    if record is None:
        raise UserError(f"no record {path}: bench run prints where they are")
    folder = whole.parents[4] / FOLDER
    for export in exports(folder):
        if same_cell(json.loads((export / CELL).read_text(encoding="utf-8")), record):
            return export
    name = f"{record['key'][:16]}-seed{record['seed']}"
    raise UserError(f"{path} holds no weights: {command(record, folder / name)}")


def exports(folder: Path) -> Iterator[Path]:
    """Those in a folder that name their cell."""
    yield from (path.parent for path in sorted(folder.glob(f"*/{CELL}")))


def same_cell(found: Record, record: Record) -> bool:
    """Whether both are of one cell; a record has more to say."""
    return all(record.get(key) == value for key, value in found.items())


def command(record: Record, folder: Path) -> str:
    """What makes the export; a finished cell is trained again in another folder of results."""
    params = differing(record["params"], LossSpec(record["loss"]).complete.params)
    default = make_recipe(record["domain"], {}).model_dump(mode="json")
    changes = [("--set", params), ("--recipe", differing(record["recipe"], default))]
    words = ["bench", "run", "--domain", record["domain"], "--dataset", record["dataset"]]
    words += ["--loss", record["loss"], "--seeds", str(record["seed"])]
    for option, values in changes:
        for key, value in values.items():
            words += [option, f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join([*words, "--results", "ELSEWHERE", "--export", str(folder)])


def differing(values: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the default."""
    return {key: value for key, value in values.items() if value != default.get(key)}
