"""Read the records of a results folder, from loose files and packs alike.

Only what is asked for is read whole: of every other cell one loose record, or its line in a pack.

A record may be in a pack and loose, or in two packs. That is harmless where they agree, and an
error that names both where they do not.
"""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, cast

from contrastbench.benchmarks.records import packs, schema, store
from contrastbench.benchmarks.records.packs import Pack, Stored
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Fields, Matches, Record
from contrastbench.errors import UserError

SHIPPED = Path(__file__).parents[2] / "results"  # an installed package has its records, too
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
        for folder in loss_folders(dataset):
            for found in list_records(folder, lambda *_: True):
                yield folder / found.name, found.record


def find_record(path: Path) -> Record | None:
    """Return the record of a file, which may be in a pack, or None."""
    if os.path.lexists(path):
        return store.read_valid(path)
    return next((pack.record(path.parent.name, entry) for pack, entry in in_packs(path)), None)


def record_bytes(path: Path) -> bytes | None:
    """Return the bytes of a record's file, which may be in a pack; None: there is none."""
    if os.path.lexists(path):
        return store.file_bytes(path)
    return next((pack.data(entry) for pack, entry in in_packs(path)), None)


def in_packs(path: Path) -> Iterator[tuple[Pack, packs.Entry]]:
    """Yield the packs that have the record of a file, each with its entry."""
    for pack in packs.packs_of(path.parents[1]):
        if entry := pack.entries.get(path.parent.name, {}).get(path.name):
            yield pack, entry


class Listing(NamedTuple):
    """The files of a data set's records."""

    files: list[Path]  # of those that are in no pack
    packs: list[Pack]

    @property
    def stored(self) -> dict[str, Stored]:
        """Return all records by FOLDER/FILE."""
        packed = {name: one for pack in self.packs for name, one in pack.stored.items()}
        return packed | self.loose

    @property
    def loose(self) -> dict[str, Stored]:
        """Return those that have files by FOLDER/FILE."""
        return {
            f"{path.parent.name}/{path.name}": Stored(path, partial(store.file_bytes, path))
            for path in self.files
        }


def listing(dataset: Path) -> Listing:
    """List the files of a data set's records; there may be none."""
    folders = sorted(path for path in dataset.glob("*") if path.is_dir())
    files = [folder / name for folder in folders for name in loose(folder)]
    return Listing(files, packs.packs_of(dataset))


def said_invalid(pack: Pack) -> bool:
    """Check a whole pack, say which of its records are invalid, and return whether some are.

    Raises:
        UserError: a record is not as it was published, or the index says something else of it.
    """
    invalid = pack.check()
    for error in invalid.values():
        schema.warn(error)
    return bool(invalid)


def finished_cells(folder: Path) -> list[tuple[Record, int]]:
    """Return the cells of a loss, by identity, with the number of finished records."""
    names, identities = dict[str, set[str]](), dict[str, Record]()
    for name, about in identities_in(folder):
        if about["status"] in store.FINAL_STATUSES:
            identities.setdefault(about["key"], about)
            names.setdefault(about["key"], set()).add(name)
    return [(identities[key], len(some)) for key, some in names.items()]


def recorded_seconds(dataset: Path) -> list[tuple[Record, list[float]]]:
    """Return the run times of a data set's ok records by identity; one stored twice counts once."""
    found: dict[str, tuple[Record, dict[str, float]]] = {}
    for folder in loss_folders(dataset):
        for name, about in identities_in(folder):
            if about["status"] == "ok":
                took = found.setdefault(about["key"], (about, {}))[1]
                if about["seconds"] is not None:
                    took.setdefault(name, about["seconds"])
    return [(about, list(took.values())) for about, took in found.values()]


def identities_in(folder: Path) -> Iterator[tuple[str, Record]]:
    """Yield the names of a loss's valid records with identity, status and seconds."""
    for name in loose(folder):
        try:
            yield name, store.read_valid(folder / name)
        except InvalidRecord as error:
            schema.warn(error)
    for pack in packs.packs_of(folder.parent):
        for one in pack.entries.get(folder.name, {}).values():
            about = {**one.identity, "status": one.status, "seconds": one.seconds}
            yield one.name, cast(Record, about)


def list_records(folder: Path, matches: Matches, seed: int | None = None) -> list[StoredRecord]:
    """List the records of a folder that match, of all seeds or of one."""
    names = [name for name in loose(folder) if seed is None or f"-seed{seed}." in name]
    by_cell = groupby(names, lambda name: name.partition("-seed")[0])
    found = [one for _, some in by_cell for one in file_records(folder, list(some), matches)]
    return distinct_records(folder, [*packed_records(folder, matches, seed), *found])


def packed_records(folder: Path, matches: Matches, seed: int | None) -> Iterator[StoredRecord]:
    """Yield the valid packed records of a loss that match, of all seeds or of one."""
    for pack in packs.packs_of(folder.parent):
        for one in pack.entries.get(folder.name, {}).values():
            wanted = seed is None or one.seed == seed
            if wanted and matches(one.identity["key"], lambda one=one: one.identity):  # type: ignore[misc]
                try:
                    yield StoredRecord(one.name, pack.record(folder.name, one), pack.path)
                except InvalidRecord as error:
                    schema.warn(error)


def file_records(folder: Path, names: list[str], matches: Matches) -> Iterator[StoredRecord]:
    """Yield the records of the files of one cell, if the cell matches."""
    for name in names:
        try:
            record = store.read_valid(folder / name)
        except InvalidRecord as error:
            schema.warn(error)
            continue
        if not matches(record["key"], lambda record=record: record):  # type: ignore[misc]
            return
        yield StoredRecord(name, record, folder / name)


def distinct_records(folder: Path, found: Iterable[StoredRecord]) -> list[StoredRecord]:
    """Return each record once, by name; of equal records the first, so the packed one.

    Raises:
        UserError: two contradict each other.
    """
    by_name: dict[str, StoredRecord] = {}
    for one in found:
        other = by_name.setdefault(one.name, one)
        if other is not one:
            check_agree(folder / one.name, other.record, other.where, one.record, one.where)
    return [by_name[name] for name in sorted(by_name)]


def check_agree(path: Path, one: Record, where: object, other: Record, elsewhere: object) -> None:
    """Raise if two runs of the cell of a file found different things."""
    if not same_result(one, other):
        raise UserError(
            f"{path}: {brief(one)} in {where}, but {brief(other)} in {elsewhere}: "
            "remove one of them"
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
    packed = (pack.entries for pack in packs.packs_of(dataset))
    return [dataset / name for name in sorted(there.union(*packed))]


def loose(folder: Path) -> list[str]:
    """Return the file names in the folder of a loss, including failed runs."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []
