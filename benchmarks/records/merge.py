"""The union of folders of records.

What is published in one is published in the other, and nothing is replaced. A loose record becomes
a loose file; of a pack, what is not there yet comes as a pack.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.benchmarks.records import files, packs, reading, store
from contrastbench.benchmarks.records.packs import Pack, Row
from contrastbench.benchmarks.records.store import Record
from contrastbench.losses.errors import UserError

SHIPPED = Path(__file__).parents[2] / "results"  # an installed package has its records, too


@dataclass
class Merged:
    """What a merge did."""

    added: int = 0
    equal: int = 0
    unequal: list[str] = field(default_factory=list)

    def compare(self, path: Path, theirs: bytes, ours: bytes, where: object) -> None:
        """Count a record that is there already; of unequal ones the first stays.

        Args:
            path: of its file, as it is or as it would be.
            theirs: the bytes that come.
            ours: those that are there.
            where: the coming one's file or pack.
        """
        if theirs == ours:
            self.equal += 1
            return
        one, other = store.parsed(ours, path), store.parsed(theirs, where)
        if reading.agree(one, other):
            self.equal += 1
        else:
            found = f"{reading.brief(one)}, but {reading.brief(other)} in {where}"
            self.unequal.append(f"{path}: {found}")


def merge(sources: Sequence[Path], results: Path) -> Merged:
    """Publish the sources' records in results; of unequal ones the first stays, and both are named.

    Raises:
        UserError: a source has no records, or one of them is not as it was published; nothing has
            been done then. Or results cannot be written; what was added before stays.
    """
    for source in sources:
        check(source)
    done = Merged()
    for source in sources:
        for dataset in reading.datasets(source):
            target = results / "runs" / dataset.relative_to(source / "runs")
            with packs.writable(target):
                for pack in packs.of(dataset):
                    merge_pack(pack, target, done)
                for folder in reading.folders(dataset):
                    merge_files(folder, target / folder.name, done)
    return done


def check(source: Path) -> None:
    """Raise unless a source has records, and each is whole and stands where it belongs."""
    found = False
    for dataset in reading.datasets(source):
        for folder in reading.folders(dataset):
            for name in reading.loose(folder):
                path = folder / name
                store.checked(store.file_of(path), path, path)
                found = True
        found |= bool(packs.of(dataset))
    if not found:
        raise UserError(f"{source} holds no records: name a folder that holds runs/")


def merge_files(folder: Path, target: Path, done: Merged) -> None:
    """Add the loose records of a loss."""
    ours, missing = packs.of(target.parent), list[str]()
    for name in reading.loose(folder):
        there = bytes_of(target / name, ours)
        if there is None:
            missing.append(name)
        else:
            done.compare(target / name, store.file_of(folder / name), there, folder / name)
    if missing:
        target.mkdir(parents=True, exist_ok=True)
        wanted = ((target / name, store.file_of(folder / name)) for name in missing)
        for name, added in zip(missing, files.publish_all(wanted), strict=True):
            done.added += added
            if not added:  # somebody else was first
                theirs, there = (store.file_of(path / name) for path in (folder, target))
                done.compare(target / name, theirs, there, folder / name)
        files.sync_folder(target)


def bytes_of(path: Path, ours: Sequence[Pack]) -> bytes | None:
    """A record's file, which may be in a pack; None: there is none."""
    if path.exists():
        return store.file_of(path)
    found = ((pack, pack.find(path.parent.name, path.name)) for pack in ours)
    return next((pack.data(row) for pack, row in found if row), None)


def merge_pack(pack: Pack, target: Path, done: Merged) -> None:
    """Add what a dataset's folder has not of a pack: all of it as it is, or a part as a pack."""
    missing = {folder: missing_of(pack, target / folder, done) for folder in pack.folders}
    count = sum(map(len, missing.values()))
    if not count:
        return
    target.mkdir(parents=True, exist_ok=True)
    with files.on_its_way(target) as path:
        if count == pack.count:
            shutil.copyfile(pack.path, path)
            files.sync(path)
        else:
            packs.write(path, pack.dictionary, rows(pack, missing))
        packs.publish(path)
    done.added += count


def missing_of(pack: Pack, target: Path, done: Merged) -> set[str]:
    """What a loss's folder has not of a pack; the rest is compared."""
    ours, theirs = packs.of(target.parent), pack.checksums(target.name)
    there = {
        name: checksum for one in ours for name, checksum in one.checksums(target.name).items()
    }
    loose = set(reading.loose(target))
    for name in sorted(theirs.keys() & (there.keys() | loose)):
        if name not in loose and theirs[name] == there[name]:
            done.equal += 1
        else:
            mine = bytes_of(target / name, ours)
            assert mine is not None, "it is there"
            done.compare(target / name, pack.file(target.name, name), mine, pack.path)
    return theirs.keys() - there.keys() - loose


def rows(pack: Pack, wanted: dict[str, set[str]]) -> Iterator[tuple[Row, Record]]:
    """The wanted records of a pack, by folder and name, with what they are of."""
    for folder, names in wanted.items():
        identities = {key: identity for _, key, identity in pack.cells(folder)}
        for row in pack.rows(folder):
            if row.name in names:
                yield row, identities[row.key]()
