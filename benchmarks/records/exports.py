"""Say in an exported encoder which cell it comes from."""

import json
from pathlib import Path

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Fields
from contrastbench.domains.reading import contents
from contrastbench.domains.reading import reading as one_line

CELL_FILE = "cell.json"  # in an export: what it is of


def dataset_of(folder: str) -> str | None:
    """Return the data set that an encoder was trained on, if its export says so."""
    cell = Path(folder) / CELL_FILE
    with one_line(cell, "export it again"):
        return str(json.loads(contents(cell))["dataset"]) if cell.is_file() else None


def holds(folder: Path, record: Fields) -> bool:
    """Return whether the folder is an export of the record's cell."""
    cell = folder / CELL_FILE
    with one_line(cell, "export it again"):
        identity = json.loads(contents(cell)) if cell.is_file() else None
        named = (*store.IDENTITY, "seed")
        return identity is not None and all(identity[name] == record[name] for name in named)
