"""Read the records of a results folder, from loose files and packs alike.

Only what is asked for is read whole: of every other cell one record.

A record may be in a pack and loose, or in two packs. That is harmless where they agree, and an
error that names both where they do not.
"""

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.benchmarks.records import packs, schema, store
from contrastbench.benchmarks.records.packs import Pack
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.schema import InvalidRecord, shown
from contrastbench.benchmarks.records.store import Fields, Matches, Record
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
        """Return the bytes of the file."""
        if self.pack:
            return self.pack.data(self.folder.name, self.name)
        return store.file_bytes(self.path)

    def record(self) -> Record:
        """Return the record; what is unchanged is not read again.

        Raises:
            UserError: it is no whole record, or another's.
            InvalidRecord: a field has another type, or is out of bounds.
        """
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
            for one, record in list_records(folder):
                yield one.path, record


def find(path: Path) -> Stored | None:
    """Return a record's file, by itself or in a pack; None: there is none."""
    if os.path.lexists(path):
        return Stored(path.parent, path.name)
    found = packs.packs_of(path.parents[1])
    having = (pack for pack in found if path.name in pack.folders.get(path.parent.name, ()))
    return next((Stored(path.parent, path.name, pack) for pack in having), None)


def find_record(path: Path) -> Record | None:
    """Return the record of a file, which may be in a pack, or None."""
    found = find(path)
    return found.record() if found else None


def stored_in(folder: Path) -> list[Stored]:
    """Return the files of a loss's records by name, a packed one before a loose one."""

    def found() -> list[Stored]:
        packed = [
            Stored(folder, name, pack)
            for pack in packs.packs_of(folder.parent)
            for name in pack.folders.get(folder.name, ())
        ]
        loose = (Stored(folder, name) for name in loose_files(folder))
        return sorted([*packed, *loose], key=lambda one: one.name)

    return remembered(("files", folder), found)


def stored_of(dataset: Path) -> list[Stored]:
    """Return the files of a data set's records, by loss and name; there may be none."""
    return [one for folder in loss_folders(dataset) for one in stored_in(folder)]


def list_records(
    folder: Path, matches: Matches = lambda _: True, seed: int | None = None
) -> list[tuple[Stored, Record]]:
    """Return the valid records of a loss that match, by file name, including failed runs.

    Args:
        folder: see `store.loss_folder`.
        matches: says it by the record, of which it needs the identity alone.
        seed: that of the records; None: any.

    Raises:
        UserError: one of them is no whole record, or two of one name contradict each other.
    """
    wanted = [one for one in stored_in(folder) if seed is None or f"-seed{seed}." in one.name]
    found: dict[str, tuple[Stored, Record]] = {}
    for _, cell in groupby(wanted, lambda one: one.name.partition("-seed")[0]):
        for one in cell:
            try:
                record = one.record()
            except InvalidRecord as error:
                schema.warn(error)
                continue
            if not matches(record):
                break
            check_agree(*found.setdefault(one.name, (one, record)), one, record)
    return list(found.values())


def check_agree(one: Stored, record: Record, other: Stored, its: Record) -> None:
    """Raise if two runs of the cell of a file found different things."""
    if record is not its and (differing := difference(record, its, one.where, other.where)):
        raise UserError(f"{one.path}: {differing}: remove one of them")


def difference(one: Record, other: Record, here: object = "one", there: object = "other") -> str:
    """Return the first value in which two runs of one cell contradict each other, as each has it.

    What only one release writes contradicts nothing. The text is empty where the two agree.
    """
    ours: Fields = one
    first = {name: ours[name] for name in ("status", "metrics") if name in ours}
    results = {k: value for k, value in {**first, **ours}.items() if k not in INCIDENTAL}
    for name, value, its in unequal_values(results, other):
        return f"{name} is {shown(value)} in {here}, but {shown(its)} in {there}"
    return ""


def unequal_values(one: Any, other: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the values of both that differ, with their names; seconds are measured, not found."""
    parts: dict[Any, tuple[Any, Any]] = {}
    if isinstance(one, dict) and isinstance(other, dict):
        parts = {key: (one[key], other[key]) for key in one if key in other}
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = dict(enumerate(zip(one, other, strict=True)))
    elif one != other:
        yield name, one, other
    for key, (value, its) in parts.items():
        if not str(key).startswith("seconds"):
            yield from unequal_values(value, its, f"{name}.{key}".lstrip("."))


def dataset_folders(results: Path) -> list[Path]:
    """Return the folders of all datasets."""
    return sorted(path for path in results.glob("runs/*/*") if path.is_dir())


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
