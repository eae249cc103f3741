"""Packs: the finished records of a data set in one compressed file that never changes.

A pack is `runs/DOMAIN/DATASET/packed-HASH.sqlite`, an SQLite database that is only ever read. HASH
is the start of the sha256 of the file itself, which every process checks before it reads. So a torn
or altered pack cannot pass for a whole one, and packs of several machines lie side by side.

Its table `blocks` holds the records' files byte for byte, some hundred kilobytes of them compressed
together. `records` says where each one begins, and `cells` and `recipes` say what it belongs to.
Version 1, which compressed each record by itself with a dictionary, is only read.
"""

import hashlib
import json
import lzma
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from contrastbench.benchmarks.records import schema, store
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.errors import UserError

PACK_PATTERN = "packed-*.sqlite"
MAX_RECORD_BYTES = 2**24  # bytes of one record's file, and of anything else in a pack
BLOCKS_KEPT = 16  # of a pack, each some hundred kilobytes
CELL_COLUMNS = ("folder", "key", *store.IDENTITY)
CELLS_AND_RECIPES = {
    "recipes": "CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE)",
    "cells": (
        "CREATE TABLE cells (id INTEGER PRIMARY KEY, folder TEXT NOT NULL, key TEXT NOT NULL, "
        "domain TEXT NOT NULL, dataset TEXT NOT NULL, loss TEXT NOT NULL, loss_code TEXT NOT NULL, "
        "params TEXT NOT NULL, recipe INTEGER NOT NULL, protocol TEXT NOT NULL, "
        "data_hash TEXT NOT NULL, UNIQUE (folder, key))"
    ),
}
RECORD_COLUMNS = (
    "CREATE TABLE records (cell INTEGER NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL, "
    "seconds REAL, sha256 TEXT NOT NULL, {}, PRIMARY KEY (cell, seed))"
)
TABLES = {  # of each version
    1: {
        "dictionary": "CREATE TABLE dictionary (deflated BLOB NOT NULL)",
        **CELLS_AND_RECIPES,
        "records": RECORD_COLUMNS.format("file BLOB NOT NULL"),
    },
    2: {
        **CELLS_AND_RECIPES,
        "records": RECORD_COLUMNS.format(
            "block INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL"
        ),
        "blocks": "CREATE TABLE blocks (id INTEGER PRIMARY KEY, xz BLOB NOT NULL)",
    },
}
VERSION = max(TABLES)
PLACE = {1: f"records.rowid, 0, {MAX_RECORD_BYTES}", 2: "block, start, size"}
BLOCK = {
    1: "SELECT file FROM records WHERE rowid = ?",
    2: "SELECT xz FROM blocks WHERE id = ?",
}
COLUMN_TYPES = (*[str] * len(CELL_COLUMNS), int, str, float, str, int, int, int)


class Entry(NamedTuple):
    """One record in a pack, and where its bytes are."""

    name: str  # of its file
    identity: Record  # with the key; shared by the seeds of a cell
    seed: int
    status: str
    seconds: float | None
    sha256: str
    block: int
    start: int  # bytes of the block that come before it
    size: int  # bytes


class Stored(NamedTuple):
    """Where a record is, and what reads its bytes."""

    where: Path  # its file, or the pack
    read: Callable[[], bytes]


class Pack:
    """An open pack, whose bytes match the hash in its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.block = lru_cache(BLOCKS_KEPT)(self.read_block)  # neighbours are read one by one
        with self.readable():
            address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self.base = sqlite3.connect(address, uri=True, check_same_thread=False)
            weakref.finalize(self, self.base.close)
            self.base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RECORD_BYTES)
            self.base.execute("PRAGMA trusted_schema = OFF")
            self.version = self.checked_version()
            self.entries = self.read_index()  # by the folder of the loss, then by name

    def checked_version(self) -> int:
        """Return the version of its format; raise unless it has its tables and nothing else."""
        ((version,),) = self.base.execute("PRAGMA user_version")
        if version > VERSION:
            raise UserError(
                f"{self.path} has pack version {version}, but this contrastbench reads up to "
                f"{VERSION}: upgrade contrastbench"
            )
        found = self.base.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        if dict(found) != TABLES.get(version):
            raise ValueError("its tables are others")
        return int(version)

    def read_index(self) -> dict[str, dict[str, Entry]]:
        """Return what the pack says of each record; raise unless each has a cell of its folder."""
        names = ", ".join(f"cells.{name}" for name in CELL_COLUMNS if name != "recipe")
        rows = self.base.execute(
            f"SELECT {names}, recipes.recipe, seed, status, seconds, records.sha256, "
            f"{PLACE[self.version]} FROM records LEFT JOIN cells ON cell = cells.id "
            "LEFT JOIN recipes ON cells.recipe = recipes.id ORDER BY folder, key, seed"
        )
        found: dict[str, dict[str, Entry]] = {}
        identity: tuple[tuple[str, ...], Record] | None = None
        recipes: dict[str, Any] = {}
        width = len(CELL_COLUMNS)
        for row in rows:
            check_types(row)
            if identity is None or identity[0] != row[:width]:
                identity = row[:width], self.cell(row[:width], recipes)
            folder, key, seed = row[0], row[1], row[width]
            one = Entry(f"{key[:16]}-seed{seed}.json", identity[1], *row[width:])
            if one.name in found.setdefault(folder, {}):
                raise ValueError(f"{folder} has {one.name} twice")
            found[folder][one.name] = one
        return found

    def cell(self, values: tuple[str, ...], recipes: dict[str, Any]) -> Record:
        """Return the identity of a cell; raise unless the pack is in the folder of its data set."""
        *texts, recipe = values
        names = [name for name in CELL_COLUMNS if name != "recipe"]
        about: dict[str, Any] = dict(zip(names, texts, strict=True))
        if about.pop("folder") != store.file_name(about["loss"]):
            raise ValueError("a cell's folder is not that of its loss")
        if recipe not in recipes:
            recipes[recipe] = json.loads(recipe)
        about |= {"params": json.loads(about["params"]), "recipe": recipes[recipe]}
        if not (isinstance(about["params"], dict) and isinstance(about["recipe"], dict)):
            raise ValueError("a cell's parameters or recipe are none")
        of = about["domain"], about["dataset"]
        if tuple(map(store.file_name, of)) != self.path.parts[-3:-1]:
            raise UserError(f"{self.path} belongs to {'/'.join(of)}: move it back there")
        return cast(Record, about)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn any damage of the file into an error of one line."""
        try:
            yield
        except UserError:
            raise
        except (
            *(sqlite3.Error, lzma.LZMAError, zlib.error, ValueError, LookupError, TypeError),
            *(AttributeError, RecursionError, MemoryError),
        ) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise UserError(
                f"{self.path} is not a pack ({why}): restore it, or delete it and run its cells "
                "again"
            ) from None

    def data(self, entry: Entry) -> bytes:
        """Return the bytes of a record's file."""
        return self.block(entry.block)[entry.start :][: entry.size]

    @property
    def stored(self) -> dict[str, Stored]:
        """Return its records by FOLDER/FILE."""
        return {
            f"{folder}/{name}": Stored(self.path, partial(self.data, entry))
            for folder, entries in self.entries.items()
            for name, entry in entries.items()
        }

    def read_block(self, number: int) -> bytes:
        """Read the bytes of a block."""
        with self.readable():
            ((data,),) = self.base.execute(BLOCK[self.version], (number,))
            return self.decompressor(data)

    @property
    def decompressor(self) -> Callable[[bytes], bytes]:
        """Return what decompresses a block."""
        if self.version == VERSION:
            return partial(whole, lzma.LZMADecompressor(lzma.FORMAT_XZ))
        ((dictionary,),) = self.base.execute("SELECT deflated FROM dictionary")
        inflated = whole(zlib.decompressobj(-15), dictionary)
        return partial(whole, zlib.decompressobj(-15, inflated))

    def record(self, folder: str, entry: Entry) -> Record:
        """Return a record after checking it like a loose one, and against the index.

        Raises:
            UserError: it is no record, or the index says something else.
            InvalidRecord: a field has another type, or is out of bounds.
        """
        return remembered((self.path, folder, entry.name), lambda: self.checked(folder, entry))

    def checked(self, folder: str, entry: Entry) -> Record:
        """Read a record for `record`."""
        path, where = self.place(folder, entry)
        record = store.valid(store.parsed(self.data(entry), where), path, where)
        said = {**entry.identity, "status": entry.status, "seconds": entry.seconds}
        check_index(said, record, where)
        return record

    def place(self, folder: str, entry: Entry) -> tuple[Path, str]:
        """Return the path of a record outside of the pack, and what errors call it."""
        return self.path.parent / folder / entry.name, f"{self.path}: {folder}/{entry.name}"

    def check(self) -> dict[Path, InvalidRecord]:
        """Check every record, and all that the index says of it.

        Returns:
            What is wrong with the invalid ones, by the paths of their files.

        Raises:
            UserError: a record is not as it was published, or the index says something else.
        """
        invalid: dict[Path, InvalidRecord] = {}
        for folder, entries in self.entries.items():
            for entry in entries.values():
                path, where = self.place(folder, entry)
                try:
                    store.check_key(self.checked(folder, entry), where)
                    check_index({"sha256": entry.sha256}, from_json(self.data(entry)), where)
                except InvalidRecord as error:
                    invalid[path] = error
        return invalid


def check_index(said: Fields, record: Fields, where: str) -> None:
    """Raise unless a record is what the index says of it, which decides where it is shown."""
    for name, value in said.items():
        if value != record.get(name):
            raise UserError(
                f"{where} has {name} {schema.shown(record.get(name))}, the index of the pack says "
                f"{schema.shown(value)}: restore the pack, or delete it and run its cells again"
            )


def whole(how: Any, data: bytes) -> bytes:
    """Return what is compressed, up to a limit, or raise ValueError."""
    found: bytes = how.decompress(data, MAX_RECORD_BYTES)
    if not how.eof or how.unused_data:
        raise ValueError("what is compressed is cut off or too long")
    return found


def check_types(row: tuple[Any, ...]) -> None:
    """Raise unless a row's values have the types of their columns, which SQLite does not check."""
    if row[0] is None:
        raise ValueError("a record lacks its cell")
    for value, kind in zip(row, COLUMN_TYPES, strict=True):
        if type(value) is not kind and not (kind is float and value is None):
            raise ValueError("a value is of another type")


_opened: dict[Path, tuple[store.FileState, Pack]] = {}


def open_pack(path: Path) -> Pack:
    """Open a pack, check its bytes once per process, and keep it open.

    Raises:
        UserError: it is torn, altered, or no pack.
    """
    state = store.state_of(path)
    known = _opened.get(path)
    if known is None or known[0] != state:
        if not path.is_file() or path.name.partition(".")[0] != pack_name(path).partition(".")[0]:
            raise UserError(
                f"{path} is torn or was altered (its sha256 is not that of its name): restore it, "
                "or delete it and run its cells again"
            )
        known = _opened[path] = state, Pack(path)
    return known[1]


def pack_name(path: Path) -> str:
    """Return the name of a pack, which contains a hash of its bytes."""
    try:
        with path.open("rb") as file:
            return f"packed-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}.sqlite"
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): restore it or delete it") from None


def packs_of(dataset: Path) -> list[Pack]:
    """Return the packs of a data set's folder by name.

    Raises:
        UserError: one is no pack.
    """
    return [open_pack(path) for path in sorted(dataset.glob(PACK_PATTERN))]
