"""Merge folders of records.

What is published in one is published in the other, and nothing is replaced. A loose record becomes
a loose file, and a pack comes as it is. Where a pack has a record that may not come, the others
become loose files.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.benchmarks.records import files, packing, packs, reading
from contrastbench.benchmarks.records.reading import Stored
from contrastbench.benchmarks.records.schema import InvalidRecord


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
        with packing.writable(target):
            merge_dataset(dataset, target, done, invalid)
    return done


def merge_dataset(dataset: Path, target: Path, done: Merged, invalid: Container[Stored]) -> None:
    """Add the records of a data set: a pack as it is, unless a part of it may not come."""
    for pack in packs.packs_of(dataset):
        stored = list(packing.in_pack(pack))
        valid, unequal = [file for file in stored if file not in invalid], len(done.unequal)
        new = compare_known(valid, target, done)
        if new and valid == stored and len(done.unequal) == unequal:
            target.mkdir(parents=True, exist_ok=True)
            files.publish_file(target / pack.path.name, pack.path.read_bytes())
            files.sync_folder(target)
            done.added += len(new)
        else:
            publish(new, target, done)
    loose = [file for file in reading.stored_of(dataset) if not file.pack and file not in invalid]
    publish(compare_known(loose, target, done), target, done)


def compare_known(theirs: Iterable[Stored], target: Path, done: Merged) -> list[Stored]:
    """Compare what is there already, and return what is new."""
    ours = {stored.place: stored for stored in reading.stored_of(target)}
    new = []
    for stored in theirs:
        if stored.place in ours:
            done.compare(ours[stored.place], stored)
        else:
            new.append(stored)
    return new


def publish(new: Iterable[Stored], target: Path, done: Merged) -> None:
    """Publish records as loose files; another process may have been first."""
    wanted = {target / stored.place: stored for stored in new}
    added = files.publish_all({path: stored.data for path, stored in wanted.items()})
    for path, stored in wanted.items():
        if added[path]:
            done.added += 1
        else:
            done.compare(Stored(path.parent, path.name), stored)
