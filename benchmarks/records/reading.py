"""Read the records of a results folder, from loose files and packs alike.

Only what is asked for is read whole: of every other cell one loose record, or its line in a pack.

A record may be in a pack and loose, or in two packs. That is harmless where they agree, and an
error that names both where they do not. While somebody packs or undoes a pack, it is for a moment
in both, never in neither. But it may go from the place that is listed second to the one that was
listed first: so both are listed again if a pack came or went meanwhile, or if something has gone
between listing and reading.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from contrastbench.benchmarks.records import packs, schema, store
from contrastbench.benchmarks.records.packs import Pack
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Fields, Matches, MissingFile, Record
from contrastbench.errors import UserError

T = TypeVar("T")
TRIES = 100  # listings, while somebody packs
INCIDENTAL = (  # of two runs of one cell
    *("seconds", "peak_memory_mib", "environment", "details"),
    *("command", "own_loss"),
)


class StoredRecord(NamedTuple):
    """A record with the file or pack that holds it."""

    name: str  # of its file
    record: Record
    where: Path  # its file, or the pack


def matching(folder: Path, matches: Matches, seed: int | None = None) -> list[Record]:
    """Return the records of a loss whose cell matches, by file name, including failed runs.

    Args:
        folder: see `store.loss_folder`.
        matches: says it by the key, or by the identity, which need not be read if the key is known.
        seed: that of the records; None: any.

    Raises:
        UserError: one of them is no whole record, or two of one name contradict each other.
    """
    return [found.record for found in list_records(folder, matches, seed)]


def all_records(results: Path) -> Iterator[tuple[Path, Record]]:
    """Yield all records with the paths of their files, also for packed ones."""
    for dataset in dataset_folders(results):
        for folder in repeated(dataset, partial(loss_folders, dataset)):
            for found in list_records(folder, lambda *_: True):
                yield folder / found.name, found.record


def find_record(path: Path) -> Record | None:
    """Return the record of a file, which may be in a pack, or None."""

    def read() -> Record | None:
        if os.path.lexists(path):
            return unless_gone(path, lambda path: store.read_matching(path, lambda *_: True))
        found = (
            pack.found(path.parent.name, path.name) for pack in packs.packs_of(path.parents[1])
        )
        return next(filter(None, found), None)

    return repeated(path.parents[1], read)


def record_bytes(path: Path) -> bytes | None:
    """Return the bytes of a record's file, which may be in a pack; None: there is none."""

    def read() -> bytes | None:
        with suppress(FileNotFoundError):
            return unless_gone(path, store.file_bytes)
        for pack in packs.packs_of(path.parents[1]):
            if row := pack.find(path.parent.name, path.name):
                return pack.data(row)
        return None

    with suppress(FileNotFoundError):  # most are loose: no pack need be looked for
        return unless_gone(path, store.file_bytes)
    return repeated(path.parents[1], read)


class Snapshot(NamedTuple):
    """The files of a dataset's records at one moment."""

    loose: dict[Path, set[str]]  # by folder
    packs: list[Pack]  # which can be read though they may go

    @property
    def files(self) -> list[Path]:
        """Return the paths of the records that are in no pack."""
        return [folder / name for folder, names in self.loose.items() for name in sorted(names)]

    def names(self, folder: Path) -> set[str]:
        """Return the names of a loss's records, loose or packed."""
        packed = (pack.checksums(folder.name) for pack in self.packs)
        return self.loose.get(folder, set()).union(*packed)


def snapshot(dataset: Path) -> Snapshot:
    """List the files of a dataset's records at this moment; there may be none."""

    def read() -> Snapshot:
        there = loss_folders(dataset) if dataset.is_dir() else []
        return Snapshot({folder: set(loose(folder)) for folder in there}, packs.packs_of(dataset))

    return repeated(dataset, read)


def check_packs(dataset: Path) -> None:
    """Check all packs of a dataset, and say which records are invalid.

    Raises:
        UserError: a record is not as it was published, or the index says something else of it.
    """
    for pack in snapshot(dataset).packs:
        for error in pack.check().values():
            schema.warn(error)


def finished_cells(folder: Path) -> list[tuple[Record, int]]:
    """Return the cells of a loss, by identity, with the number of finished records."""

    def read() -> list[tuple[Record, int]]:
        names, identities = dict[str, set[str]](), dict[str, Record]()
        for name, about in loose_identities(folder):
            if about["status"] in store.FINAL_STATUSES:
                identities[about["key"]] = about
                names.setdefault(about["key"], set()).add(name)
        for pack in packs.packs_of(folder.parent):
            for _, key, identity in pack.cells(folder.name):
                identities.setdefault(key, identity())
            for row in pack.rows(folder.name):
                names.setdefault(row.key, set()).add(row.name)
        return [(identities[key], len(some)) for key, some in names.items()]

    return repeated(folder.parent, read)


def recorded_seconds(dataset: Path) -> list[tuple[Record, list[float]]]:
    """Return the run times of a dataset's ok records, grouped by identity."""

    def read() -> list[tuple[Record, list[float]]]:
        return [cost for folder in loss_folders(dataset) for cost in seconds_in(folder)]

    return repeated(dataset, read)


def seconds_in(folder: Path) -> Iterator[tuple[Record, list[float]]]:
    """Yield each cell of a loss's folder with its seconds; a record stored twice counts once."""
    seen = set[str]()
    for name, about in loose_identities(folder):
        if about["status"] == "ok":
            seen.add(name)
            yield about, [] if about["seconds"] is None else [about["seconds"]]
    for pack in packs.packs_of(folder.parent):
        took = {key: list(rows) for key, rows in groupby(pack.rows(folder.name), lambda r: r.key)}
        for _, key, identity in pack.cells(folder.name):
            rows = [row for row in took.get(key, ()) if row.name not in seen]
            seen |= {row.name for row in rows}
            yield (
                identity(),
                [r.seconds for r in rows if r.status == "ok" and r.seconds is not None],
            )


def loose_identities(folder: Path) -> Iterator[tuple[str, Record]]:
    """Yield the names of valid loose records of a loss, with their identities."""
    for name in loose(folder):
        try:
            yield name, unless_gone(folder / name, store.identity)
        except InvalidRecord as error:
            schema.warn(error)


def list_records(folder: Path, matches: Matches, seed: int | None = None) -> list[StoredRecord]:
    """List the records of a folder that match, of all seeds or of one."""

    def read() -> list[StoredRecord]:
        names = [name for name in loose(folder) if seed is None or f"-seed{seed}." in name]
        found = [
            StoredRecord(name, record, pack.path)
            for pack in packs.packs_of(folder.parent)
            for name, record in pack.matching(folder.name, matches, seed)
        ]
        for _, some in groupby(names, lambda name: name.partition("-seed")[0]):
            found += file_records(folder, list(some), matches)
        return distinct_records(folder, found)

    return repeated(folder.parent, read)


def file_records(folder: Path, names: list[str], matches: Matches) -> Iterator[StoredRecord]:
    """Yield the records of the files of one cell, if the cell matches."""
    for name in names:
        path = folder / name
        try:
            record = unless_gone(path, lambda path: store.read_matching(path, matches))
        except InvalidRecord as error:
            schema.warn(error)
            continue
        if record is None:
            return
        yield StoredRecord(name, record, path)


def distinct_records(folder: Path, found: Iterable[StoredRecord]) -> list[StoredRecord]:
    """Return each record once, by name; of equal records the first, so the packed one.

    Raises:
        UserError: two contradict each other.
    """
    by_name: dict[str, StoredRecord] = {}
    for one in found:
        other = by_name.setdefault(one.name, one)
        if other is not one:
            check_agree(folder / one.name, other, one)
    return [by_name[name] for name in sorted(by_name)]


class Somewhere(Protocol):
    """A record with the file or pack that holds it."""

    @property
    def record(self) -> Record: ...

    @property
    def where(self) -> Path: ...


def check_agree(path: Path, one: Somewhere, other: Somewhere) -> None:
    """Raise if two runs of the cell of a file found different things."""
    if not same_result(one.record, other.record):
        raise UserError(
            f"{path}: {brief(one.record)} in {one.where}, but {brief(other.record)} in "
            f"{other.where}: remove one of them"
        )


def same_result(one: Record, other: Record) -> bool:
    """Return whether two runs of one cell found the same.

    A detail that only one release writes contradicts nothing.
    """
    shared = [
        key
        for key in one["details"].keys() & other["details"].keys()
        if not key.startswith("seconds")
    ]
    details: list[Fields] = [one["details"], other["details"]]
    results = [
        {key: value for key, value in record.items() if key not in INCIDENTAL}
        for record in (one, other)
    ]
    return results[0] == results[1] and all(details[0][key] == details[1][key] for key in shared)


def brief(record: Record) -> str:
    """Return the record's main number and its origin, in brief."""
    if record["status"] != "ok":
        return str(record["status"])
    commit = (record["environment"].get("commit") or "an installed package")[:8]
    return f"{record['main']} {record['metrics'][record['main']]:.4f} ({commit})"


def dataset_folders(results: Path) -> list[Path]:
    """Return the folders of all datasets."""
    return sorted(path for path in results.glob("runs/*/*") if path.is_dir())


def loss_folders(dataset: Path) -> list[Path]:
    """Return the folders of its losses, including those that exist only in packs."""
    there = {path.name for path in dataset.iterdir() if path.is_dir()}
    return [
        dataset / name
        for name in sorted(there.union(*(p.folders for p in packs.packs_of(dataset))))
    ]


def loose(folder: Path) -> list[str]:
    """Return the file names in the folder of a loss, including failed runs."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def unless_gone(path: Path, read: Callable[[Path], T]) -> T:
    """Return the result of reading a file, unless it has gone.

    Raises:
        FileNotFoundError: there was none, as where it was packed meanwhile; there may be one again.
        UserError: it is no record.
    """
    try:
        return read(path)
    except UserError as error:
        missing = isinstance(error, MissingFile) and not path.is_symlink()
        if not missing and os.path.lexists(path):
            raise
        raise FileNotFoundError(path) from None


def repeated(dataset: Path, read: Callable[[], T]) -> T:
    """Read the records of a dataset until no pack came or went meanwhile.

    Args:
        dataset: the folder whose packs are watched.
        read: lists and reads; a FileNotFoundError of it repeats it.
    """

    def once() -> T:
        before = packs.folder_state(dataset)
        found = read()
        if packs.folder_state(dataset) != before:
            raise FileNotFoundError(dataset / packs.PACK_PATTERN)
        return found

    return until_found(once)


def until_found(read: Callable[[], T]) -> T:
    """Read until nothing goes away between listing and reading."""
    for _ in range(TRIES):
        try:
            return read()
        except FileNotFoundError as error:
            gone = error.filename or error
    raise UserError(f"{gone} changes while it is read: wait until nobody packs or deletes there")
