"""Pack the finished records of each data set into one file, and unpack them.

Both are for folders in which nothing runs, and hold a lock against each other. What is removed
stands elsewhere first: a kill leaves a record where it was, or in both places, which is harmless.
"""

import lzma
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from contrastbench.benchmarks.records import files, reading, schema
from contrastbench.benchmarks.records.packs import (
    RECORD_FILE_NAME,
    TABLES,
    VERSION,
    Pack,
    open_pack,
    pack_name,
    packs_of,
)
from contrastbench.benchmarks.records.reading import Stored, fullness
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError, plural

BLOCK_BYTES = 2**18  # bytes of a block: a larger one saves little, and takes longer to read
XZ_PRESET = 6
LOCK = "packing.lock"


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
    """Pack each data set with loose finished records or several packs; yield a line for each."""
    yield from each_dataset(results, pack_dataset)


def unpack(results: Path) -> Iterator[str]:
    """Make the records of packs the files that they were; yield a line for each such data set."""
    yield from each_dataset(results, unpack_dataset)


def each_dataset(results: Path, do: Callable[[Path], str]) -> Iterator[str]:
    """Apply a function to each data set under the lock, and yield its messages."""
    datasets = reading.filled_folders(results)
    path = results / "runs" / LOCK
    with writable(results):
        try:
            lock = FileLock(path).acquire(timeout=0)
        except Timeout:
            raise UserError(f"somebody else packs {results}: wait until that has ended") from None
        with lock:
            for dataset in datasets:
                if line := do(dataset):
                    yield f"{dataset.relative_to(results / 'runs').as_posix()}: {line}"
            path.unlink()


def pack_dataset(dataset: Path) -> str:
    """Pack one data set, and return a message if there was something to do.

    Invalid records are named, and stay where they are, with the rest of a pack that has one.
    """
    valid, invalid = finished_of(dataset)
    kept = {file.pack for file in invalid}
    taken = {f: record for f, record in valid.items() if not f.pack or f.pack not in kept}
    gone = {file.where for file in taken}
    if all(file.pack for file in taken) and len(gone) < 2:
        return ""
    once = [file for file, _ in reading.agreeing(taken.items())]
    before = sum(path.stat().st_size for path in gone)
    new = write_pack(dataset, ((file.folder.name, file.name, file.data()) for file in once))
    for path in gone - {new}:
        path.unlink()
    for folder in {path.parent for path in gone}:
        files.sync_folder(folder)
    sizes = f"{before / 1e6:.2f} MB before, {new.stat().st_size / 1e6:.2f} MB now"
    return f"{len(once)} record{plural(len(once))} in {new.name}, {sizes}"


def finished_of(dataset: Path) -> tuple[dict[Stored, Record], list[Stored]]:
    """Return the valid records of finished runs, and the invalid ones, which are named."""
    valid, invalid = reading.checked_of(dataset)
    for error in invalid.values():
        schema.warn(error)
    finished = {file: valid[file] for file in valid if RECORD_FILE_NAME.fullmatch(file.name)}
    return finished, list(invalid)


def write_pack(dataset: Path, records: Iterable[tuple[str, str, bytes]]) -> Path:
    """Write the pack of files, each with its folder and name, read it back, and return its path."""
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
    for stored in in_pack(open_pack(named)):
        stored.checked()
    return named


def insert(base: sqlite3.Connection, records: Iterable[tuple[str, str, bytes]]) -> None:
    """Insert files, and blocks of about `BLOCK_BYTES`."""
    block, number = bytearray(), 1

    def flush() -> None:
        # its bytes need no check of their own: the pack's name is their hash
        data = lzma.compress(bytes(block), check=lzma.CHECK_NONE, preset=XZ_PRESET)
        base.execute("INSERT INTO blocks VALUES (?, ?)", (number, data))

    for folder, name, data in records:
        if block and len(block) + len(data) > BLOCK_BYTES:
            flush()
            block, number = bytearray(), number + 1
        row = folder, name, number, len(block), len(data)
        base.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", row)
        block += data
    flush()


def unpack_dataset(dataset: Path) -> str:
    """Make the records of a data set's packs loose files, and return a message if it has some."""
    packs = packs_of(dataset)
    there = {file.path: file.data for pack in packs for file in in_pack(pack)}
    files.publish_all(there | {file.path: file.data for file in fullest_of(dataset)})
    for pack in packs:
        pack.path.unlink()
    return f"{len(there)} records are files again" if packs else ""


def fullest_of(dataset: Path) -> list[Stored]:
    """Return where packs say most of a record; raise where a file in its place says less."""
    valid = finished_of(dataset)[0]
    loose = {file.path: record for file, record in valid.items() if not file.pack}
    packed = [(file, record) for file, record in reading.agreeing(valid.items()) if file.pack]
    for file, record in packed:
        if file.path.exists() and fullness(loose.get(file.path, {})) < fullness(record):
            raise UserError(f"{file.path} lacks what {file.where} has: remove it")
    return [file for file, _ in packed]


def in_pack(pack: Pack) -> Iterator[Stored]:
    for folder, names in pack.folders.items():
        yield from (Stored(pack.path.parent / folder, name, pack) for name in names)
