"""Merge folders of records.

What is published in one is published in the other, and nothing is replaced. A loose record becomes
a loose file, and a pack comes as it is. Where a pack has a record that may not come, the others
become loose files.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.benchmarks.records import files, packing, reading, store
from contrastbench.benchmarks.records.packs import Stored
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.errors import UserError

Records = Mapping[str, Stored]  # of a data set, by FOLDER/FILE


@dataclass
class Merged:
    """The counts and the problems of a merge."""

    added: int = 0
    equal: int = 0
    unequal: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)

    def compare(self, path: Path, theirs: Stored, ours: bytes) -> None:
        """Count a record that is there already; of unequal ones the first stays.

        Args:
            path: of its file, as it is or as it would be.
            theirs: what comes, which was checked.
            ours: the bytes that are there.
        """
        coming = theirs.read()
        if coming == ours:
            self.equal += 1
            return
        try:
            one = store.valid(store.parsed(ours, path), path, path)
        except InvalidRecord as error:
            self.invalid.append(str(error))
            return
        other = store.parsed(coming, theirs.where)
        if reading.same_result(one, other):
            self.equal += 1
        else:
            found = f"{reading.brief(one)}, but {reading.brief(other)} in {theirs.where}"
            self.unequal.append(f"{path}: {found}")


def merge_records(
    sources: Sequence[Path], results: Path, datasets: Container[tuple[str, ...]] | None = None
) -> Merged:
    """Publish the sources' records in results; of unequal ones keep the first and report both.

    Invalid records are named and left out.

    Args:
        sources: folders of records.
        results: the folder that gets them.
        datasets: names of the folders (domain, dataset) that are merged; None: all.

    Raises:
        UserError: a source has no records, or one of them is not as it was published; nothing has
            been done then. Or results cannot be written; what was added before stays.
    """
    wanted = [
        (dataset, results / "runs" / dataset.relative_to(source / "runs"))
        for source in sources
        for dataset in folders_of(source)
        if datasets is None or dataset.parts[-2:] in datasets
    ]
    invalid = {path: error for dataset, _ in wanted for path, error in check_source(dataset)}
    done = Merged(invalid=[str(error) for error in invalid.values()])
    for dataset, target in wanted:
        with packing.writable(target):
            merge_dataset(dataset, target, done, invalid)
    return done


def folders_of(source: Path) -> list[Path]:
    """Return the folders of a source's data sets.

    Raises:
        UserError: it has no records.
    """
    found = reading.dataset_folders(source)
    if not any(any(reading.listing(dataset)) for dataset in found):
        raise UserError(f"{source} holds no records: name a folder that holds runs/")
    return found


def check_source(dataset: Path) -> Iterator[tuple[Path, InvalidRecord]]:
    """Check that each record is whole and stands where it belongs, and yield what is invalid.

    Raises:
        UserError: one is not as it was published.
    """
    there = reading.listing(dataset)
    for path in there.files:
        try:
            store.checked_record(store.file_bytes(path), path, path)
        except InvalidRecord as error:
            yield path, error
    for pack in there.packs:
        yield from pack.check().items()


def merge_dataset(dataset: Path, target: Path, done: Merged, invalid: Container[Path]) -> None:
    """Add the records of a data set: a pack as it is, unless a part of it may not come."""
    there = reading.listing(dataset)
    for pack in there.packs:
        valid, unequal = without(invalid, dataset, pack.stored), len(done.unequal)
        new = compare_known(valid, target, done)
        if new and len(valid) == len(pack.stored) and len(done.unequal) == unequal:
            target.mkdir(parents=True, exist_ok=True)
            files.publish_file(target / pack.path.name, pack.path.read_bytes())
            files.sync_folder(target)
            done.added += len(new)
        else:
            publish(new, target, done)
    loose = without(invalid, dataset, there.loose)
    publish(compare_known(loose, target, done), target, done)


def without(invalid: Container[Path], dataset: Path, found: Records) -> Records:
    """Return the records that are not among the invalid ones."""
    return {name: one for name, one in found.items() if dataset / name not in invalid}


def compare_known(theirs: Records, target: Path, done: Merged) -> Records:
    """Compare what is there already, and return what is new."""
    ours = reading.listing(target).stored
    for name in sorted(theirs.keys() & ours.keys()):
        done.compare(target / name, theirs[name], ours[name].read())
    return {name: one for name, one in theirs.items() if name not in ours}


def publish(new: Records, target: Path, done: Merged) -> None:
    """Publish records as loose files; another process may have been first."""
    added = files.publish_all({target / name: one.read for name, one in new.items()})
    for name, one in new.items():
        if added[target / name]:
            done.added += 1
        else:
            done.compare(target / name, one, store.file_bytes(target / name))
