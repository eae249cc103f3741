"""Read the records of a results folder, from loose files and packs alike.

Only what is asked for is read whole: of every other cell one record.

A record may be in a pack and loose, or in two packs. That is harmless where they agree, and an
error that names both where they do not.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import packs, schema, store
from contrastbench.benchmarks.records.packs import Pack
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.schema import InvalidRecord, shown
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.errors import UserError

# of two runs of one cell
INCIDENTAL = ("peak_memory_mib", "environment", "command", "own_loss")


class Stored(NamedTuple):
    """A record's file, by itself or in a pack."""

    folder: Path  # of its loss
    name: str
    pack: Pack | None = None

    @property
    def path(self) -> Path:
        """Return the path of the file, as it is or as it would be outside of its pack."""
        return self.folder / self.name

    @property
    def place(self) -> str:
        """Return FOLDER/FILE, its name within the data set."""
        return f"{self.folder.name}/{self.name}"

    @property
    def where(self) -> Path:
        """Return the file, or the pack that holds it."""
        return self.pack.path if self.pack else self.path

    def data(self) -> bytes:
        if self.pack:
            return self.pack.data(self.folder.name, self.name)
        return store.file_bytes(self.path)

    def record(self) -> Record:
        """Return the record, see `store.valid`; what is unchanged is not read again."""
        if self.pack:
            return self.pack.record(self.folder.name, self.name)
        return store.read_valid(self.path)

    def checked(self) -> Record:
        """Read the record again, and check its checksum and its key, too."""
        where = f"{self.where}: {self.place}" if self.pack else self.path
        return store.checked_record(self.data(), self.path, where)


def all_records(results: Path) -> Iterator[tuple[Path, Record]]:
    """Yield all records with the paths of their files, also for packed ones."""
    for dataset in dataset_folders(results):
        for folder in loss_folders(dataset):
            for stored, record in list_records(folder):
                yield stored.path, record


def find_record(path: Path) -> Record | None:
    """Return the record of a file, by itself or in a pack; None: there is none."""
    if os.path.lexists(path):
        return store.read_valid(path)
    opened = packs.packs_of(path.parent.parent)  # which a bare name has too
    having = (pack for pack in opened if path.name in pack.folders.get(path.parent.name, ()))
    return next((pack.record(path.parent.name, path.name) for pack in having), None)


def stored_in(folder: Path) -> list[Stored]:
    """Return the files of a loss's records by name, a packed one before a loose one."""

    def both_kinds() -> list[Stored]:
        packed = [
            Stored(folder, name, pack)
            for pack in remembered(folder.parent, lambda: packs.packs_of(folder.parent))
            for name in pack.folders.get(folder.name, ())
        ]
        loose = (Stored(folder, name) for name in loose_files(folder))
        return sorted([*packed, *loose], key=lambda stored: stored.name)

    return remembered(("files", folder), both_kinds)


def stored_of(dataset: Path) -> list[Stored]:
    return [file for folder in loss_folders(dataset) for file in stored_in(folder)]


def checked_of(dataset: Path) -> tuple[dict[Stored, Record], dict[Stored, InvalidRecord]]:
    """Read each record of a data set again, and return the valid ones and what is invalid."""
    valid, invalid = dict[Stored, Record](), dict[Stored, InvalidRecord]()
    for stored in stored_of(dataset):
        try:
            valid[stored] = stored.checked()
        except InvalidRecord as error:
            invalid[stored] = error
    return valid, invalid


class StoredCell(NamedTuple):
    """A cell in the folder of a loss, of which one record is read."""

    stored: Stored
    record: Record  # the first valid one, which is in this file
    others: list[Stored]

    def records(self) -> list[Record]:
        both = chain([(self.stored, self.record)], valid_records(self.others))
        return [record for _, record in agreeing(both) if record["key"] == self.record["key"]]


def cells_in(folder: Path, seed: int | None = None) -> Iterator[StoredCell]:
    """Yield the cells of a loss that have a valid record."""
    wanted = (s for s in stored_in(folder) if seed is None or f"-seed{seed}." in s.name)
    for _, cell in groupby(wanted, lambda stored: stored.name.partition("-seed")[0]):
        files = [*cell]
        for stored, record in valid_records(files):
            yield StoredCell(stored, record, files[files.index(stored) + 1 :])
            break


def valid_records(files: Iterable[Stored]) -> Iterator[tuple[Stored, Record]]:
    """Yield files with their records; an invalid one is named and left out."""
    for stored in files:
        try:
            record = stored.record()
        except InvalidRecord as error:
            schema.warn(error)
        else:
            yield stored, record


def list_records(folder: Path) -> list[tuple[Stored, Record]]:
    """Return the valid records of a loss by file name, including failed runs."""
    return agreeing(valid_records(stored_in(folder)))


def agreeing(records: Iterable[tuple[Stored, Record]]) -> list[tuple[Stored, Record]]:
    """Return files with their records, each name once; raise where two of one name differ.

    Of two that agree the fuller one is kept: an early release has fewer metrics.
    """
    listed: dict[str, tuple[Stored, Record]] = {}
    for stored, record in records:
        first, ours = listed.setdefault(stored.name, (stored, record))
        if ours is record:
            continue
        if wrong := difference(ours, record, first.where, stored.where):
            raise UserError(f"{first.path}: {wrong}: remove one of them")
        if fullness(record) > fullness(ours):
            listed[stored.name] = stored, record
    return list(listed.values())


def fullness(record: Fields) -> int:
    return len(record) + sum(len(record.get(part, ())) for part in ("metrics", "details"))


def difference(ours: Fields, theirs: Fields, here: object = "one", there: object = "other") -> str:
    """Return the first value in which two runs of one cell contradict each other, as each has it.

    What only one release writes contradicts nothing. The text is empty where the two agree.
    """
    first = {name: ours[name] for name in ("status", "metrics") if name in ours}
    results = {k: value for k, value in {**first, **ours}.items() if k not in INCIDENTAL}
    for name, value, its in unequal_values(results, theirs):
        return f"{name} is {shown(value)} in {here}, but {shown(its)} in {there}"
    return ""


def unequal_values(ours: Any, theirs: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the values of both that differ, with their names; seconds are measured, not found."""
    parts: dict[Any, tuple[Any, Any]] = {}
    if isinstance(ours, dict) and isinstance(theirs, dict):
        parts = {key: (ours[key], theirs[key]) for key in ours if key in theirs}
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        parts = dict(enumerate(zip(ours, theirs, strict=True)))
    elif ours != theirs:
        yield name, ours, theirs
    for key, (value, its) in parts.items():
        if not str(key).startswith("seconds"):
            yield from unequal_values(value, its, f"{name}.{key}".lstrip("."))


def dataset_folders(results: Path) -> list[Path]:
    return sorted(path for path in results.glob("runs/*/*") if path.is_dir())


def filled_folders(results: Path) -> list[Path]:
    datasets = dataset_folders(results)
    if not any(map(stored_of, datasets)):
        raise UserError(f"{results} holds no records: name a folder that holds runs/")
    return datasets


def loss_folders(dataset: Path) -> list[Path]:
    """Return the folders of its losses, including those that exist only in packs."""
    there = {path.name for path in dataset.glob("*") if path.is_dir()}
    packed = (pack.folders for pack in packs.packs_of(dataset))
    return [dataset / name for name in sorted(there.union(*packed))]


def loose_files(folder: Path) -> list[str]:
    """Return the file names in the folder of a loss, including failed runs."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []
