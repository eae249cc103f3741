"""Merge folders of records.

What is published in one is published in the other, and nothing is replaced. A loose record becomes
a loose file; of a pack, what is not there yet comes as a pack.
"""

import shutil
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from contrastbench.benchmarks.records import files, packs, reading, store
from contrastbench.benchmarks.records.pack_writing import WrittenRecord, write_pack
from contrastbench.benchmarks.records.packs import Pack
from contrastbench.benchmarks.records.reading import Snapshot
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.errors import UserError

SHIPPED = Path(__file__).parents[2] / "results"  # an installed package has its records, too


@dataclass
class Merged:
    """The counts and the problems of a merge."""

    added: int = 0
    equal: int = 0
    unequal: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)

    def compare(self, path: Path, theirs: bytes, ours: bytes, where: object) -> None:
        """Count a record that is there already; of unequal ones the first stays.

        Args:
            path: of its file, as it is or as it would be.
            theirs: the bytes that come, which were checked.
            ours: those that are there.
            where: the coming one's file or pack.
        """
        if theirs == ours:
            self.equal += 1
            return
        try:
            one = store.valid(store.parsed(ours, path), path, path)
        except InvalidRecord as error:
            self.invalid.append(str(error))
            return
        other = store.parsed(theirs, where)
        if reading.same_result(one, other):
            self.equal += 1
        else:
            found = f"{reading.brief(one)}, but {reading.brief(other)} in {where}"
            self.unequal.append(f"{path}: {found}")


def merge_records(sources: Sequence[Path], results: Path) -> Merged:
    """Publish the sources' records in results; of unequal ones keep the first and report both.

    Invalid records are named and left out.

    Raises:
        UserError: a source has no records, or one of them is not as it was published; nothing has
            been done then. Or results cannot be written; what was added before stays.
    """
    invalid = {path: error for source in sources for path, error in check_source(source).items()}
    done = Merged(invalid=[str(error) for error in invalid.values()])
    for source in sources:
        for dataset in reading.dataset_folders(source):
            target = results / "runs" / dataset.relative_to(source / "runs")
            with packs.writable(target):
                merge_dataset(dataset, target, done, invalid)
    return done


def check_source(source: Path) -> dict[Path, InvalidRecord]:
    """Check that a source has records, and each is whole and stands where it belongs.

    Returns:
        What is wrong with the invalid ones, by the paths of their files.

    Raises:
        UserError: it has none, or one is not as it was published.
    """
    found, invalid = False, dict[Path, InvalidRecord]()
    for dataset in reading.dataset_folders(source):
        there = reading.snapshot(dataset)
        for path in there.files:
            try:
                store.checked_record(read_source(path), path, path)
            except InvalidRecord as error:
                invalid[path] = error
        for pack in there.packs:
            invalid |= pack.check()
        found |= bool(there.files or there.packs)
    if not found:
        raise UserError(f"{source} holds no records: name a folder that holds runs/")
    return invalid


def read_source(path: Path) -> bytes:
    """Return a record's file, which may have been packed since it was listed."""
    data = reading.record_bytes(path)
    if data is None:
        raise UserError(f"{path} was removed meanwhile: merge again")
    return data


def merge_dataset(dataset: Path, target: Path, done: Merged, invalid: Container[Path]) -> None:
    """Add the records of a dataset; those in packs as packs, the others as files."""
    there = reading.snapshot(dataset)
    for pack in there.packs:
        merge_pack(pack, target, done, invalid)
    by_folder = groupby(there.files, lambda path: path.parent)
    for folder, paths in by_folder:
        merge_files([path for path in paths if path not in invalid], target / folder.name, done)


def merge_files(paths: Sequence[Path], target: Path, done: Merged) -> None:
    """Add the loose records of a loss."""
    ours = reading.snapshot(target.parent).names(target)
    for path in paths:
        if path.name in ours:
            done.compare(
                target / path.name, read_source(path), read_source(target / path.name), path
            )
    missing = [path for path in paths if path.name not in ours]
    if missing:
        target.mkdir(parents=True, exist_ok=True)
        added_all = files.publish_all((target / path.name, read_source(path)) for path in missing)
        for path, added in zip(missing, added_all, strict=True):
            done.added += added
            if not added:  # somebody else was first
                done.compare(
                    target / path.name, read_source(path), read_source(target / path.name), path
                )
        files.sync_folder(target)


def merge_pack(pack: Pack, target: Path, done: Merged, invalid: Container[Path]) -> None:
    """Add what a dataset's folder has not of a pack: all of it as it is, or a part as a pack."""
    there = reading.snapshot(target)
    missing = {
        folder: missing_of(pack, target / folder, there, done, invalid) for folder in pack.folders
    }
    count = sum(map(len, missing.values()))
    if not count:
        return
    target.mkdir(parents=True, exist_ok=True)
    with files.on_its_way(target) as path:
        if not (count == pack.count and copy_pack(pack, path)):
            write_pack(path, wanted_records(pack, missing))
        packs.publish_pack(path)
    done.added += count


def copy_pack(pack: Pack, path: Path) -> bool:
    """Copy the file of a pack, unless it has gone; an open file can still be read."""
    try:
        shutil.copyfile(pack.path, path)
    except FileNotFoundError:
        return False
    files.sync(path)
    return True


def missing_of(
    pack: Pack, target: Path, there: Snapshot, done: Merged, invalid: Container[Path]
) -> set[str]:
    """Return which records of a pack a loss's folder lacks, and compare the others."""
    folder = pack.path.parent / target.name
    theirs = {
        name: checksum
        for name, checksum in pack.checksums(target.name).items()
        if folder / name not in invalid
    }
    packed = {
        name: checksum
        for one in there.packs
        for name, checksum in one.checksums(target.name).items()
    }
    ours = there.names(target)
    for name in sorted(theirs.keys() & ours):
        if theirs[name] == packed.get(name) and name not in there.loose.get(target, ()):
            done.equal += 1
        else:
            mine = read_source(target / name)
            done.compare(target / name, pack.file(target.name, name), mine, pack.path)
    return theirs.keys() - ours


def wanted_records(pack: Pack, wanted: dict[str, set[str]]) -> Iterator[WrittenRecord]:
    """Yield the wanted records of a pack, by folder and name."""
    for folder, names in wanted.items():
        identities = {key: identity for _, key, identity in pack.cells(folder)}
        for row in pack.rows(folder):
            if row.name in names:
                yield WrittenRecord(row, identities[row.key](), pack.data(row))
