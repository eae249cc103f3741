"""Packs: the files of a data set's finished records in one compressed file that never changes.

A pack is `runs/DOMAIN/DATASET/packed-HASH.sqlite`, an SQLite database that is only ever read. HASH
is the start of the sha256 of the file itself, which every process checks before it reads, also
where it then takes what it read before from a frame. So a torn or altered pack cannot pass for a
whole one, and packs of several machines lie side by side.

Its table `blocks` holds the files byte for byte, some hundred kilobytes of them compressed
together, and `files` says where each begins. Versions 1 and 2, which also said of each record what
it is of, are only read.
"""

import hashlib
import lzma
import re
import sqlite3
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import frame, store
from contrastbench.benchmarks.records.read_cache import within_moment
from contrastbench.benchmarks.records.store import MAX_RECORD_BYTES, Record
from contrastbench.errors import UserError

SHIPPED = Path(__file__).parents[2] / "results"  # an installed package has its records, too
PACK_PATTERN = "packed-*.sqlite"
# of a finished record's file
RECORD_FILE_NAME = re.compile(r"([0-9a-f]{16})-seed([0-9]{1,10})\.json")
MAX_XZ_BYTES = 2**26  # of memory to decompress a block, whatever it asks for; ours takes 2**23
Span = tuple[int, ...]  # where a file is: its block, the bytes before it there, and its own
BLOCKS_KEPT = 64  # of a pack, each some hundred kilobytes
EARLY_CELLS = {
    "recipes": "CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE)",
    "cells": (
        "CREATE TABLE cells (id INTEGER PRIMARY KEY, folder TEXT NOT NULL, key TEXT NOT NULL, "
        "domain TEXT NOT NULL, dataset TEXT NOT NULL, loss TEXT NOT NULL, loss_code TEXT NOT NULL, "
        "params TEXT NOT NULL, recipe INTEGER NOT NULL, protocol TEXT NOT NULL, "
        "data_hash TEXT NOT NULL, UNIQUE (folder, key))"
    ),
}
EARLY_RECORDS = (
    "CREATE TABLE records (cell INTEGER NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL, "
    "seconds REAL, sha256 TEXT NOT NULL, {}, PRIMARY KEY (cell, seed))"
)
BLOCKS = {"blocks": "CREATE TABLE blocks (id INTEGER PRIMARY KEY, xz BLOB NOT NULL)"}
PLACE = "block INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL"
TABLES = {  # of each version
    1: {
        "dictionary": "CREATE TABLE dictionary (deflated BLOB NOT NULL)",
        **EARLY_CELLS,
        "records": EARLY_RECORDS.format("file BLOB NOT NULL"),
    },
    2: {**EARLY_CELLS, "records": EARLY_RECORDS.format(PLACE), **BLOCKS},
    3: {
        "files": (
            "CREATE TABLE files (folder TEXT NOT NULL, name TEXT NOT NULL, "
            f"{PLACE}, PRIMARY KEY (folder, name))"
        ),
        **BLOCKS,
    },
}
VERSION = max(TABLES)
EARLY_FILES = (
    "SELECT folder, substr(key, 1, 16) || '-seed' || seed || '.json', {} "
    "FROM records LEFT JOIN cells ON cell = cells.id"
)
FILES = {
    1: EARLY_FILES.format(f"records.rowid, 0, {MAX_RECORD_BYTES}"),
    2: EARLY_FILES.format("block, start, size"),
    3: "SELECT folder, name, block, start, size FROM files",
}
BLOCK = {
    1: "SELECT file FROM records WHERE rowid = ?",
    2: "SELECT xz FROM blocks WHERE id = ?",
    3: "SELECT xz FROM blocks WHERE id = ?",
}


class Pack:
    """An open pack, whose bytes match the hash in its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.block = lru_cache(BLOCKS_KEPT)(self.read_block)  # neighbours are read one by one
        self.read = cache(self.read_record)
        with self.readable():
            address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self.base = sqlite3.connect(address, uri=True, check_same_thread=False)
            weakref.finalize(self, self.base.close)
            self.base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RECORD_BYTES)
            self.base.execute("PRAGMA trusted_schema = OFF")
            self.version = self.checked_version()
            self.folders = self.read_spans()  # of losses: the place of each file by its name

    def checked_version(self) -> int:
        """Return the version of its format; raise unless it has its tables and nothing else."""
        ((version,),) = self.base.execute("PRAGMA user_version")
        if version > VERSION:
            raise UserError(
                f"{self.path} has pack version {version}, but this contrastbench reads up to "
                f"{VERSION}: upgrade contrastbench"
            )
        tables = self.base.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        if dict(tables) != TABLES.get(version):
            raise ValueError("its tables are others")
        return int(version)

    def read_spans(self) -> dict[str, dict[str, Span]]:
        """Return where each file is, in order; raise where one could lie outside of its folder."""
        places: dict[str, dict[str, Span]] = {}
        for folder, name, *place in self.base.execute(f"{FILES[self.version]} ORDER BY 1, 2"):
            if not folder:
                raise ValueError("a record lacks its cell")
            if store.file_name(folder) != folder or not RECORD_FILE_NAME.fullmatch(name):
                raise ValueError(f"{folder}/{name} is no record's file")
            if {*map(type, place)} != {int}:
                raise ValueError("a value is of another type")
            places.setdefault(folder, {})[name] = tuple(place)
        return places

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

    def data(self, folder: str, name: str) -> bytes:
        block, start, size = self.folders[folder][name]
        return self.block(block)[start : start + size]

    def read_block(self, number: int) -> bytes:
        with self.readable():
            ((data,),) = self.base.execute(BLOCK[self.version], (number,))
            if self.version > 1:
                return whole(lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_XZ_BYTES), data)
            ((dictionary,),) = self.base.execute("SELECT deflated FROM dictionary")
            inflated = whole(zlib.decompressobj(-15), dictionary)
            return whole(zlib.decompressobj(-15, inflated), data)

    def record(self, folder: str, name: str) -> Record:
        """Return a record, which is kept; within one moment all come from the frame."""
        known = self.framed[folder].get(name) if within_moment() else None
        return known or self.read(folder, name)

    @cached_property
    def framed(self) -> frame.Framed:
        """Return the valid records of the frame; where there is none, the whole pack is read."""
        return frame.kept(self.path, lambda: {k: dict(self.valid_records(k)) for k in self.folders})

    def valid_records(self, folder: str) -> Iterator[tuple[str, Record]]:
        for name in self.folders[folder]:
            with suppress(UserError):  # whoever asks for this one is told
                yield name, self.read(folder, name)

    def read_record(self, folder: str, name: str) -> Record:
        """Read a record of the pack and check its fields and its place, see `store.valid`."""
        where = f"{self.path}: {folder}/{name}"
        record = store.parsed(self.data(folder, name), where, checksum=False)
        return store.valid(record, (*self.path.parts[-3:-1], folder, name), where)


def whole(how: Any, data: bytes) -> bytes:
    """Return what is compressed, up to a limit, or raise ValueError."""
    inflated: bytes = how.decompress(data, MAX_RECORD_BYTES)
    if not how.eof or how.unused_data:
        raise ValueError("what is compressed is cut off or too long")
    return inflated


_opened: dict[Path, tuple[store.FileState, Pack]] = {}


def open_pack(path: Path) -> Pack:
    """Open a pack, check its bytes once per process, and keep it open."""
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
    return [open_pack(path) for path in sorted(dataset.glob(PACK_PATTERN))]
