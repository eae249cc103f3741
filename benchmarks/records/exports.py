"""Say in an exported encoder which cell it comes from."""

import json
from pathlib import Path

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Fields
from contrastbench.domains.reading import contents
from contrastbench.domains.reading import reading as one_line

CELL_FILE = "cell.json"  # in an export: what it is of


def note_cell(folder: Path, identity: Fields) -> None:
    """Write into an export which cell it comes from."""
    (folder / CELL_FILE).write_text(store.canonical(identity) + "\n", encoding="utf-8")


def dataset_of(folder: str) -> str | None:
    """Return the data set that an encoder was trained on, if its export says so."""
    cell = Path(folder) / CELL_FILE
    if not cell.is_file():
        return None
    with one_line(cell, "export it again"):
        return str(json.loads(contents(cell))["dataset"])


def holds(folder: Path, record: Fields) -> bool:
    """Return whether the folder is an export of the record's cell."""
    cell = folder / CELL_FILE
    if not cell.is_file():
        return False
    with one_line(cell, "export it again"):
        identity = json.loads(contents(cell))
        return all(identity[name] == record[name] for name in (*store.IDENTITY, "seed"))
