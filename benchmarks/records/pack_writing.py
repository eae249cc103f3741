"""Write records into a new pack."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from contrastbench.benchmarks.records import files, pack_formats, store
from contrastbench.benchmarks.records.pack_formats import FORMATS, VERSION
from contrastbench.benchmarks.records.packs import CELL_COLUMNS, PackRow
from contrastbench.benchmarks.records.store import Record


class WrittenRecord(NamedTuple):
    """A record on its way into a pack."""

    row: PackRow  # its place is found as it is written
    identity: Record
    data: bytes


def write_pack(path: Path, records: Iterable[WrittenRecord]) -> None:
    """Write a database; the same records in the same order are the same bytes.

    Args:
        path: a file that is not there.
        records: by folder, key and seed.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA page_size = 4096")
        base.execute("PRAGMA journal_mode = OFF")
        base.execute("PRAGMA synchronous = OFF")  # the whole file is synced at the end
        base.execute(f"PRAGMA user_version = {VERSION}")
        base.execute("BEGIN")
        for statement in FORMATS[VERSION].tables.values():
            base.execute(statement)
        insert(base, records)
        base.execute("COMMIT")
    files.sync(path)


def insert(base: sqlite3.Connection, records: Iterable[WrittenRecord]) -> None:
    """Insert records with their identities into the tables of a pack."""
    blocks, recipes = BlockWriter(base), dict[str, int]()
    cell, last = 0, ("", "")
    for row, identity, data in records:
        if row[:2] != last:
            cell, last = cell + 1, row[:2]
            insert_cell(base, cell, row, identity, recipes)
        placed = (*row[2:6], *blocks.add(data))
        base.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (cell, *placed))
    blocks.flush()


def insert_cell(
    base: sqlite3.Connection, cell: int, row: PackRow, identity: Record, recipes: dict[str, int]
) -> None:
    """Insert a cell, and its recipe if that is a new one."""
    recipe = store.canonical(identity["recipe"])
    if recipe not in recipes:
        recipes[recipe] = len(recipes) + 1
        base.execute("INSERT INTO recipes VALUES (?, ?)", (recipes[recipe], recipe))
    values = {
        **identity,
        "params": store.canonical(identity["params"]),
        "recipe": recipes[recipe],
        "folder": row.folder,
        "key": row.key,
    }
    base.execute(
        f"INSERT INTO cells (id, {', '.join(CELL_COLUMNS)}) VALUES (?{', ?' * len(CELL_COLUMNS)})",
        (cell, *(values[name] for name in CELL_COLUMNS)),
    )


class BlockWriter:
    """Collect files of records, and write each block when it is full."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self.base, self.number, self.pending = base, 1, bytearray()

    def add(self, data: bytes) -> tuple[int, int, int]:
        """Add a file, and return its place: block, start and size."""
        if self.pending and len(self.pending) + len(data) > pack_formats.BLOCK_BYTES:
            self.flush()
        place = self.number, len(self.pending), len(data)
        self.pending += data
        return place

    def flush(self) -> None:
        """Write what is pending as a block."""
        xz = pack_formats.compressed(bytes(self.pending))
        self.base.execute("INSERT INTO blocks VALUES (?, ?)", (self.number, xz))
        self.number += 1
        self.pending.clear()
