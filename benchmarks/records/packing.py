"""Pack the finished records of each data set into one file, unpack them, and merge folders.

Packing and unpacking are for folders in which nothing runs, and hold a lock against each other.
What is removed stands elsewhere first: a kill leaves a record where it was, or in both places,
which is harmless.

What is published in one folder is merged into another, and nothing is replaced. A loose record
becomes a loose file, and a pack comes as it is. Where a pack has a record that may not come, the
others become loose files.
"""

import lzma
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from contrastbench.benchmarks.records import files, packs, reading, schema
from contrastbench.benchmarks.records.reading import Stored, fullness
from contrastbench.benchmarks.records.schema import InvalidRecord
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
    finished = {file: valid[file] for file in valid if packs.RECORD_FILE_NAME.fullmatch(file.name)}
    return finished, list(invalid)


def write_pack(dataset: Path, records: Iterable[tuple[str, str, bytes]]) -> Path:
    """Write the pack of files, each with its folder and name, read it back, and return its path."""
    with files.on_its_way(dataset) as path:
        with closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute("PRAGMA page_size = 4096")
            base.execute("PRAGMA journal_mode = OFF")
            base.execute("PRAGMA synchronous = OFF")  # the whole file is synced at the end
            base.execute(f"PRAGMA user_version = {packs.VERSION}")
            base.execute("BEGIN")
            for statement in packs.TABLES[packs.VERSION].values():
                base.execute(statement)
            insert(base, records)
            base.execute("COMMIT")
        files.sync(path)
        named = path.with_name(packs.pack_name(path))
        files.link(path, named)
    files.sync_folder(dataset)
    for stored in in_pack(packs.open_pack(named)):
        stored.checked()
    return named


def insert(base: sqlite3.Connection, records: Iterable[tuple[str, str, bytes]]) -> None:
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
    here = packs.packs_of(dataset)
    there = {file.path: file.data for pack in here for file in in_pack(pack)}
    files.publish_all(there | {file.path: file.data for file in fullest_of(dataset)})
    for pack in here:
        pack.path.unlink()
    return f"{len(there)} records are files again" if here else ""


def fullest_of(dataset: Path) -> list[Stored]:
    """Return where packs say most of a record; raise where a file in its place says less."""
    valid = finished_of(dataset)[0]
    loose = {file.path: record for file, record in valid.items() if not file.pack}
    packed = [(file, record) for file, record in reading.agreeing(valid.items()) if file.pack]
    for file, record in packed:
        if file.path.exists() and fullness(loose.get(file.path, {})) < fullness(record):
            raise UserError(f"{file.path} lacks what {file.where} has: remove it")
    return [file for file, _ in packed]


def in_pack(pack: packs.Pack) -> Iterator[Stored]:
    for folder, names in pack.folders.items():
        yield from (Stored(pack.path.parent / folder, name, pack) for name in names)


@dataclass
class Merged:
    """The counts and the problems of a merge."""

    added: int = 0
    equal: int = 0
    unequal: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)

    def compare(self, ours: Stored, theirs: Stored) -> None:
        """Count a record that is there already; of unequal ones the first stays."""
        if theirs.data() == ours.data():
            self.equal += 1
            return
        try:
            record = ours.record()
        except InvalidRecord as error:
            self.invalid.append(str(error))
            return
        other = theirs.record()
        if differing := reading.difference(record, other, "it", theirs.where):
            self.unequal.append(f"{ours.path}: {differing}")
        else:
            self.equal += 1


def merge_records(
    sources: Sequence[Path], results: Path, datasets: Container[tuple[str, ...]] | None = None
) -> Merged:
    """Publish the sources' records in results; of unequal ones keep the first and report both.

    Invalid records are named and left out. Where a source has no records, or one that is not as it
    was published, nothing is done. Where results cannot be written, what was added before stays.

    Args:
        datasets: names of the folders (domain, dataset) that are merged; None: all.
    """
    wanted = [
        (dataset, results / "runs" / dataset.relative_to(source / "runs"))
        for source in sources
        for dataset in reading.filled_folders(source)
        if datasets is None or dataset.parts[-2:] in datasets
    ]
    invalid = {k: v for dataset, _ in wanted for k, v in reading.checked_of(dataset)[1].items()}
    done = Merged(invalid=[str(error) for error in invalid.values()])
    for dataset, target in wanted:
        with writable(target):
            merge_dataset(dataset, target, done, invalid)
    return done


def merge_dataset(dataset: Path, target: Path, done: Merged, invalid: Container[Stored]) -> None:
    """Add the records of a data set: a pack as it is, unless a part of it may not come."""
    for pack in packs.packs_of(dataset):
        stored = list(in_pack(pack))
        valid, unequal = [file for file in stored if file not in invalid], len(done.unequal)
        new = compare_known(valid, target, done)
        if new and valid == stored and len(done.unequal) == unequal:
            target.mkdir(parents=True, exist_ok=True)
            files.publish_file(target / pack.path.name, pack.path.read_bytes())
            files.sync_folder(target)
            done.added += len(new)
        else:
            publish_new(new, target, done)
    loose = [file for file in reading.stored_of(dataset) if not file.pack and file not in invalid]
    publish_new(compare_known(loose, target, done), target, done)


def compare_known(theirs: Iterable[Stored], target: Path, done: Merged) -> list[Stored]:
    ours = {stored.place: stored for stored in reading.stored_of(target)}
    new = []
    for stored in theirs:
        if stored.place in ours:
            done.compare(ours[stored.place], stored)
        else:
            new.append(stored)
    return new


def publish_new(new: Iterable[Stored], target: Path, done: Merged) -> None:
    """Publish records as loose files; another process may have been first."""
    wanted = {target / stored.place: stored for stored in new}
    added = files.publish_all({path: stored.data for path, stored in wanted.items()})
    for path, stored in wanted.items():
        if added[path]:
            done.added += 1
        else:
            done.compare(Stored(path.parent, path.name), stored)
