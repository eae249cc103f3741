"""Packs: the finished records of a dataset in one compressed file that never changes.

A pack is `runs/DOMAIN/DATASET/packed-HASH.sqlite`, an SQLite database that is only ever read. HASH
is the start of the sha256 of the file itself, which every process checks before it reads: a torn or
altered pack cannot pass for a whole one, and what has one name has one content, so that packs of
several machines lie side by side and never conflict, in a repository either.

Its table `blocks` holds the records' files byte for byte, some hundred kilobytes of them compressed
together; `records` says where each one begins, and `cells` and `recipes` say what it belongs to, so
that a table reads only the blocks of what it shows. SQLite's file and xz's streams may differ
between releases, so two machines may pack the same records under two names: that is harmless, and
`bench pack` makes one of them.

Nothing is removed because a pack holds it that somebody else may remove. Who removes files first
has a pack of all that they hold under a private name, `packed-HASH.HOST.PROCESS.RANDOM.sqlite`.
Readers read it like any other, and no other process removes it. Afterwards it gets its public name
(`bench pack`), or goes because its records are files again (`--undo`). If its process was killed,
the next `bench pack` or `--undo` on that host gives it its public name. So no lock is needed, which
a network disk might not honour: links, renames and removals are atomic there, too.
"""

import hashlib
import json
import lzma
import os
import sqlite3
import stat
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from contrastbench.benchmarks.records import files, schema, store
from contrastbench.benchmarks.records.pack_formats import (
    FORMATS,
    MAX_RECORD_BYTES,
    VERSION,
    PackFormat,
)
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Fields, Matches, Record
from contrastbench.errors import UserError

PACK_PATTERN = "packed-*.sqlite"
NO_PACK_ERRORS = (  # what reading a file that is no pack may raise
    sqlite3.Error,
    lzma.LZMAError,
    zlib.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    MemoryError,
)
CELL_COLUMNS = ("folder", "key", *store.IDENTITY)  # the columns of a cell


class PackRow(NamedTuple):
    """One record in a pack, and where its bytes are."""

    folder: str  # of its loss, in that of its dataset
    key: str
    seed: int
    status: str
    seconds: float | None
    sha256: str
    block: int = 0
    start: int = 0  # bytes of the block that come before it
    size: int = 0  # bytes

    @property
    def name(self) -> str:
        """Return the record's file name."""
        return f"{self.key[:16]}-seed{self.seed}.json"


@contextmanager
def writable(dataset: Path) -> Iterator[None]:
    """Turn errors of a full disk or a protected folder into one line."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"cannot write {getattr(error, 'filename', None) or dataset} ({why}): make room or "
            "name another --results"
        ) from None


def publish_pack(path: Path) -> Path:
    """Give a pack that was written its name."""
    named = path.with_name(pack_name(path))
    files.link(path, named)
    files.sync_folder(path.parent)
    return named


def pack_name(path: Path) -> str:
    """Return the name of a pack, which contains a hash of its bytes."""
    with path.open("rb") as file:
        return f"packed-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}.sqlite"


def public(path: Path) -> Path:
    """Return the public name of a pack, which may have a private one."""
    return path.with_name(f"{path.name.partition('.')[0]}.sqlite")


@contextmanager
def private_name(path: Path, named: Path) -> Iterator[Path]:
    """Give a pack a private name during the block, and then its public one unless it is gone.

    Args:
        path: the pack, or a file on its way.
        named: its public name.

    Raises:
        FileNotFoundError: somebody else has moved or removed it.
    """
    private = named.with_name(f"{named.stem}.{files.owner()}.sqlite")
    path.rename(private)
    try:
        files.sync_folder(private.parent)
        yield private
    finally:
        make_public(private)


def make_public(private: Path) -> None:
    """Give a pack with a private name its public one; do nothing if it is gone."""
    with suppress(FileNotFoundError):
        files.link(private, public(private))
        files.sync_folder(private.parent)
        private.unlink()


def recover(dataset: Path) -> None:
    """Show the packs that dead processes of this host have hidden."""
    for path in files.of_dead_owners(dataset, before="packed-*", after="sqlite"):
        make_public(path)


class Pack:
    """An open pack, whose bytes match the hash in its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.readable():
            self.base = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            weakref.finalize(self, self.base.close)
            self.base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RECORD_BYTES)
            self.base.execute("PRAGMA trusted_schema = OFF")
            self.format = self.checked_format()
            self.decompress = self.format.decompressor(self.base)
            self.check_place()
        self.last_block = (0, b"")

    def checked_format(self) -> PackFormat:
        """Return the pack's format; raise unless its tables, and nothing else, are there."""
        ((version,),) = self.base.execute("PRAGMA user_version")
        if version > VERSION:
            raise UserError(
                f"{self.path} has pack version {version}, but this contrastbench reads up to "
                f"{VERSION}: upgrade contrastbench"
            )
        found = self.base.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        if version not in FORMATS or dict(found) != FORMATS[version].tables:
            raise ValueError("its tables are others")
        return FORMATS[version]

    def check_place(self) -> None:
        """Raise unless the pack is in the folder of its dataset."""
        for of in self.base.execute("SELECT DISTINCT domain, dataset FROM cells"):
            if tuple(map(store.file_name, of)) != self.path.parts[-3:-1]:
                raise UserError(f"{self.path} belongs to {'/'.join(of)}: move it back there")

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn any damage of the file into an error of one line."""
        try:
            yield
        except UserError:
            raise
        except NO_PACK_ERRORS as error:
            check_there(self.path)
            why = " ".join(str(error).split()) or type(error).__name__
            raise UserError(
                f"{self.path} is not a pack ({why}): restore it, or delete it and run its cells "
                "again"
            ) from None

    @cached_property
    def recipes(self) -> dict[int, Record]:
        """Return all recipes of the pack by number."""
        return {
            number: json.loads(text) for number, text in self.select("SELECT * FROM recipes", ())
        }

    def select(self, statement: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an SQL statement."""
        with self.readable():
            yield from self.base.execute(statement, values)

    @cached_property
    def count(self) -> int:
        """Return the number of records in the pack."""
        ((count,),) = self.select("SELECT count(*) FROM records", ())
        return int(count)

    @property
    def folders(self) -> list[str]:
        """Return the folders of the losses in the pack."""
        found = self.select("SELECT DISTINCT folder FROM cells ORDER BY folder", ())
        return [folder for (folder,) in found]

    def matching(
        self, folder: str, matches: Matches, seed: int | None = None
    ) -> Iterator[tuple[str, Record]]:
        """Yield the records of a loss whose cell matches, of all seeds or of one, by name."""
        for cell, key, identity in self.cells(folder):
            if matches(key, identity):
                find = partial(self.of_cell, folder, cell, identity, seed)
                yield from remembered((self.path, cell, seed), find)

    def of_cell(
        self, folder: str, cell: int, identity: Callable[[], Record], seed: int | None
    ) -> list[tuple[str, Record]]:
        """Return the valid records of a cell, of all seeds or of one, by name."""
        found, of = list[tuple[str, Record]](), identity()
        for row in self.rows(folder, "cells.id = ? AND seed = ifnull(?, seed)", (cell, seed)):
            try:
                found.append((row.name, self.record(row, of)))
            except InvalidRecord as error:
                schema.warn(error)
        return found

    def cells(
        self, folder: str, where: str = "1", values: tuple[Any, ...] = ()
    ) -> Iterator[tuple[int, str, Callable[[], Record]]]:
        """Yield number, key and a function for the identity of each cell of a loss."""
        columns = f"id, {', '.join(CELL_COLUMNS)}"
        statement = f"SELECT {columns} FROM cells WHERE folder = ? AND {where} ORDER BY key"
        for number, _, key, *rest in self.select(statement, (folder, *values)):
            yield number, key, partial(self.identity, key, rest)

    def identity(self, key: str, values: list[Any]) -> Record:
        """Return the identity of a cell."""
        with self.readable():
            found = dict(zip(store.IDENTITY, values, strict=True))
            params, recipe = json.loads(found["params"]), self.recipes[found["recipe"]]
            if not isinstance(params, dict) or not isinstance(recipe, dict):
                raise ValueError("a cell's parameters or recipe are none")
            return cast(Record, {**found, "params": params, "recipe": recipe, "key": key})

    def rows(
        self, folder: str, where: str = "1", values: tuple[Any, ...] = ()
    ) -> Iterator[PackRow]:
        """Yield the records of a loss by key and seed, without decompressing them."""
        statement = (
            f"SELECT folder, key, seed, status, seconds, records.sha256, {self.format.place} "
            "FROM cells JOIN records ON cell = cells.id "
            f"WHERE folder = ? AND {where} ORDER BY key, seed"
        )
        for row in map(PackRow._make, self.select(statement, (folder, *values))):
            with self.readable():
                check_types(row)
            yield row

    def checksums(self, folder: str) -> dict[str, str]:
        """Return the sha256 of each record of a loss, by its file name."""
        statement = (
            "SELECT key, seed, records.sha256 FROM cells JOIN records ON cell = cells.id "
            "WHERE folder = ? ORDER BY key, seed"
        )
        found = self.select(statement, (folder,))
        return {f"{key[:16]}-seed{seed}.json": checksum for key, seed, checksum in found}

    def find(self, folder: str, name: str) -> PackRow | None:
        """Return the row of a record with that file name."""
        start, _, seed = name.removesuffix(".json").partition("-seed")
        if not seed.isdecimal():
            return None
        where = "key >= ? AND key < ? AND seed = ?"
        found = self.rows(folder, where, (start, f"{start}g", int(seed)))
        return next((row for row in found if row.name == name), None)

    def file(self, folder: str, name: str) -> bytes:
        """Return the bytes of a record's file, by its name."""
        row = self.find(folder, name)
        assert row, f"{name} is in {self.path}"
        return self.data(row)

    def data(self, row: PackRow) -> bytes:
        """Return the bytes of a record's file."""
        return self.block(row.block)[row.start : row.start + row.size]

    def block(self, number: int) -> bytes:
        """Return the bytes of a block; the last one is remembered, as records are read in order."""
        remembered, found = self.last_block
        if number != remembered:
            with self.readable():
                ((data,),) = self.base.execute(self.format.find_block, (number,))
                found = self.decompress(data)
            self.last_block = number, found
        return found

    def record(self, row: PackRow, identity: Record) -> Record:
        """Return a record after checking it like a loose one, and against the index.

        Raises:
            UserError: it is no record, or the index says something else.
            InvalidRecord: a field has another type, or is out of bounds.
        """
        path, where = self.place(row)
        record = store.valid(store.parsed(self.data(row), where), path, where)
        self.check_index(row, identity, record)
        return record

    def found(self, folder: str, name: str) -> Record | None:
        """Return the record of that file's name, verified; None: there is none."""
        row = self.find(folder, name)
        if row is None:
            return None
        ((_, _, identity),) = self.cells(folder, "key = ?", (row.key,))
        return self.record(row, identity())

    def place(self, row: PackRow) -> tuple[Path, str]:
        """Return the path of a record outside of the pack, and what errors call it."""
        return self.path.parent / row.folder / row.name, f"{self.path}: {row.folder}/{row.name}"

    def check_index(self, row: PackRow, identity: Fields, record: Fields) -> None:
        """Raise unless a record says what the index says of it, which decides where it is shown."""
        indexed = {**identity, "status": row.status, "seconds": row.seconds}
        for name, value in indexed.items():
            if value != record.get(name):
                raise UserError(
                    f"{self.place(row)[1]} has {name} {schema.shown(record.get(name))}, the index "
                    f"of the pack says {schema.shown(value)}: restore the pack, or delete it and "
                    "run its cells again"
                )

    def check(self) -> dict[Path, InvalidRecord]:
        """Check every record, and all that the index says of it.

        Returns:
            What is wrong with the invalid ones, by the paths of their files.

        Raises:
            UserError: a record is not as it was published, or the index says something else.
        """
        invalid: dict[Path, InvalidRecord] = {}
        for folder in self.folders:
            identities = {key: identity() for _, key, identity in self.cells(folder)}
            for row in self.rows(folder):
                try:
                    self.check_row(row, identities[row.key])
                except InvalidRecord as error:
                    invalid[self.place(row)[0]] = error
            for key, identity in identities.items():
                with self.readable():
                    store.check_key(identity, f"{self.path}: {folder}/{key}")
        return invalid

    def check_row(self, row: PackRow, identity: Record) -> None:
        """Raise unless a record is valid, and all that the index says of it is right."""
        record = self.record(row, identity)
        checksum = from_json(self.data(row))["sha256"]
        whole: Fields = {**record, "sha256": checksum}
        self.check_index(row, {"sha256": row.sha256}, whole)


# of a row
ROW_TYPES = {(str, str, int, str, seconds, str, int, int, int) for seconds in (float, type(None))}


def check_types(row: PackRow) -> None:
    """Raise unless a row's values have the types of their columns, which SQLite does not check."""
    if tuple(map(type, row)) not in ROW_TYPES:
        raise ValueError("a value is of another type")


_opened: dict[Path, tuple[store.FileState, Pack]] = {}


def open_pack(path: Path) -> Pack:
    """Open a pack, check its bytes once per process, and keep it open.

    Raises:
        FileNotFoundError: it is not there, as when `bench pack` has put another in its place.
        UserError: it is torn, altered, or no pack.
    """
    state = store.state_of(path)
    known = _opened.get(path)
    if known is None or known[0] != state:
        check_bytes(path)
        known = _opened[path] = state, Pack(path)
    return known[1]


def check_bytes(path: Path) -> None:
    """Raise unless the file's bytes are those that its name says."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        name = pack_name(path) if regular else ""
    except OSError as error:
        check_there(path)
        raise UserError(f"cannot read {path} ({error.strerror}): restore it or delete it") from None
    if name != public(path).name:
        raise UserError(
            f"{path} is torn or was altered (its sha256 is not that of its name): restore it, or "
            "delete it and run its cells again"
        )


def check_there(path: Path) -> None:
    """Raise FileNotFoundError if a pack was moved or removed meanwhile: then nothing is wrong."""
    if not os.path.lexists(path):
        raise FileNotFoundError(path) from None


def packs_of(dataset: Path) -> list[Pack]:
    """Return the packs of a dataset's folder by name, including those with private names.

    Raises:
        FileNotFoundError: one has gone meanwhile.
    """
    return [open_pack(path) for path in sorted(dataset.glob(PACK_PATTERN))]


def public_packs(dataset: Path) -> list[Pack]:
    """Return the packs of a dataset's folder that have public names, so that all may remove them.

    Raises:
        FileNotFoundError: one has gone meanwhile.
    """
    return [open_pack(path) for path in sorted(dataset.glob(PACK_PATTERN)) if path == public(path)]


def folder_state(dataset: Path) -> tuple[object, ...]:
    """Return what changes when a pack comes or goes: its name, and the time of the folder.

    The time alone would not do, as a disk's clock ticks slowly; nor would the names, as a pack that
    is made again has the same.
    """
    return store.state_of(dataset)[-2:], sorted(dataset.glob(PACK_PATTERN))
