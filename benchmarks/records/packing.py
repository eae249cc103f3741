"""Pack the finished records of each data set into one file, and unpack them.

Both are for folders in which nothing runs, and hold a lock against each other. What is removed
stands elsewhere first: a kill leaves a record where it was, or in both places, which is harmless.
"""

import lzma
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from pydantic_core import from_json

from contrastbench.benchmarks.records import files, reading, schema, store
from contrastbench.benchmarks.records.packs import (
    CELL_COLUMNS,
    TABLES,
    VERSION,
    Pack,
    open_pack,
    pack_name,
)
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError

BLOCK_BYTES = 2**18  # bytes of a block: a larger one saves little, and takes longer to read
XZ_PRESET = 6
LOCK = "packing.lock"
# of a finished record's file
RECORD_FILE_NAME = re.compile(r"([0-9a-f]{16})-seed([0-9]{1,10})\.json")


class Whole(NamedTuple):
    """A record on its way into a pack."""

    folder: str  # of its loss
    record: Record
    data: bytes
    where: Path  # its file or its pack

    @property
    def name(self) -> str:
        """Return the name of its file."""
        return f"{self.record['key'][:16]}-seed{self.record['seed']}.json"

    @property
    def order(self) -> tuple[str, str, int]:
        """Return its sort key within its data set."""
        return self.folder, self.record["key"], self.record["seed"]


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


def pack(results: Path) -> Iterator[str]:
    """Pack each data set with loose finished records or several packs; yield a line for each.

    Raises:
        UserError: there is nothing, a file is no record, two records contradict each other,
            somebody else packs, or the folder cannot be written.
    """
    yield from each_dataset(results, pack_dataset)


def unpack(results: Path) -> Iterator[str]:
    """Make the records of packs the files that they were; yield a line for each data set with one.

    Raises:
        UserError: as `pack` does.
    """
    yield from each_dataset(results, unpack_dataset)


def each_dataset(results: Path, do: Callable[[Path], str]) -> Iterator[str]:
    """Apply a function to each data set under the lock, and yield its messages."""
    found = reading.dataset_folders(results)
    if not found:
        raise UserError(f"{results} holds no records: name a folder that holds runs/")
    path = results / "runs" / LOCK
    with writable(results):
        try:
            lock = FileLock(path).acquire(timeout=0)
        except Timeout:
            raise UserError(f"somebody else packs {results}: wait until that has ended") from None
        with lock:
            for dataset in found:
                if line := do(dataset):
                    yield f"{dataset.relative_to(results / 'runs').as_posix()}: {line}"
            path.unlink()


def pack_dataset(dataset: Path) -> str:
    """Pack one data set, and return a message if there was something to do.

    Invalid records are named, and stay where they are.
    """
    there = reading.listing(dataset)
    loose = {path: one for path in there.files if (one := loose_record(path))}
    old = [one for one in there.packs if not reading.said_invalid(one)]
    if not loose and len(old) < 2:
        return ""
    records = without_doubles(
        dataset, [*(one for some in old for one in in_pack(some)), *loose.values()]
    )
    gone = [*loose, *(one.path for one in old)]
    before = sum(path.stat().st_size for path in gone)
    new = write_pack(dataset, records)
    for path in gone:
        if path != new:
            path.unlink()
    for folder in {path.parent for path in gone}:
        files.sync_folder(folder)
    sizes = f"{before / 1e6:.2f} MB before, {new.stat().st_size / 1e6:.2f} MB now"
    return f"{len(records)} records in {new.name}, {sizes}"


def loose_record(path: Path) -> Whole | None:
    """Return the finished record of a file; None: it is of a failed run, or invalid, which is said.

    Raises:
        UserError: it is no record.
    """
    if not RECORD_FILE_NAME.fullmatch(path.name):
        return None
    data = store.file_bytes(path)
    try:
        return Whole(path.parent.name, store.checked_record(data, path, path), data, path)
    except InvalidRecord as error:
        schema.warn(error)
        return None


def in_pack(pack: Pack) -> Iterator[Whole]:
    """Yield the records of a pack."""
    for folder, entries in pack.entries.items():
        for one in entries.values():
            yield Whole(folder, pack.checked(folder, one), pack.data(one), pack.path)


def without_doubles(dataset: Path, records: Iterable[Whole]) -> list[Whole]:
    """Return each record once, in order; of equal ones the first.

    Raises:
        UserError: two contradict each other.
    """
    kept: dict[tuple[str, str, int], Whole] = {}
    for one in records:
        other = kept.setdefault(one.order, one)
        if other.data != one.data:
            path = dataset / one.folder / one.name
            reading.check_agree(path, other.record, other.where, one.record, one.where)
    return [kept[order] for order in sorted(kept)]


def write_pack(dataset: Path, records: Iterable[Whole]) -> Path:
    """Write the pack of records, which come in order, read it back, and return its path."""
    with files.on_its_way(dataset) as path:
        with closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute("PRAGMA page_size = 4096")
            base.execute("PRAGMA journal_mode = OFF")
            base.execute("PRAGMA synchronous = OFF")  # the whole file is synced at the end
            base.execute(f"PRAGMA user_version = {VERSION}")
            base.execute("BEGIN")
            for statement in TABLES[VERSION].values():
                base.execute(statement)
            insert(base, records)
            base.execute("COMMIT")
        files.sync(path)
        named = path.with_name(pack_name(path))
        files.link(path, named)
    files.sync_folder(dataset)
    open_pack(named).check()
    return named


def insert(base: sqlite3.Connection, records: Iterable[Whole]) -> None:
    """Insert records with their cells and recipes, and blocks of about `BLOCK_BYTES`."""
    cells, recipes = dict[tuple[str, str], int](), dict[str, int]()
    block, number = bytearray(), 1

    def flush() -> None:
        # its bytes need no check of their own: the pack's name is their hash
        data = lzma.compress(bytes(block), check=lzma.CHECK_NONE, preset=XZ_PRESET)
        base.execute("INSERT INTO blocks VALUES (?, ?)", (number, data))

    for folder, record, data, _ in records:
        cell = folder, record["key"]
        if cell not in cells:
            cells[cell] = len(cells) + 1
            insert_cell(base, cells[cell], folder, record, recipes)
        if block and len(block) + len(data) > BLOCK_BYTES:
            flush()
            block, number = bytearray(), number + 1
        seconds = record.get("seconds")
        about = record["seed"], record["status"], None if seconds is None else float(seconds)
        place = from_json(data)["sha256"], number, len(block), len(data)
        row = cells[cell], *about, *place
        base.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        block += data
    flush()


def insert_cell(
    base: sqlite3.Connection, cell: int, folder: str, record: Record, recipes: dict[str, int]
) -> None:
    """Insert a cell, and its recipe if that is a new one."""
    recipe = store.canonical(record["recipe"])
    if recipe not in recipes:
        recipes[recipe] = len(recipes) + 1
        base.execute("INSERT INTO recipes VALUES (?, ?)", (recipes[recipe], recipe))
    params = store.canonical(record["params"])
    values = {**record, "folder": folder, "params": params, "recipe": recipes[recipe]}
    columns, marks = ", ".join(CELL_COLUMNS), ", ?" * len(CELL_COLUMNS)
    row = cell, *(values[name] for name in CELL_COLUMNS)
    base.execute(f"INSERT INTO cells (id, {columns}) VALUES (?{marks})", row)


def unpack_dataset(dataset: Path) -> str:
    """Make the records of a data set's packs loose files, and return a message if there were some.

    Raises:
        UserError: a file is there and says something else.
    """
    there = reading.listing(dataset)
    if not there.packs:
        return ""
    for one in there.packs:
        one.check()
    packed = [record for one in there.packs for record in in_pack(one)]
    loose = [record for path in there.files if (record := loose_record(path))]
    without_doubles(dataset, [*packed, *loose])
    for one in there.packs:
        files.publish_all({dataset / name: found.read for name, found in one.stored.items()})
        one.path.unlink()
    return f"{len({record.order for record in packed})} records are files again"
