"""Merge folders of records.

What is published in one is published in the other, and nothing is replaced. A loose record becomes
a loose file; of a pack, what is not there yet comes as a pack.
"""

import shutil
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.benchmarks.records import files, packing, packs, reading, store
from contrastbench.benchmarks.records.packs import Pack
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
    """Add the records of a data set; those in packs as packs, the others as files."""
    there = reading.listing(dataset)
    for pack in there.packs:
        merge_pack(pack, target, done, invalid)
    paths = [path for path in there.files if path not in invalid]
    ours = reading.listing(target).names
    new = [path for path in paths if path.name not in ours.get(path.parent.name, ())]
    for folder in {path.parent.name for path in new}:
        (target / folder).mkdir(parents=True, exist_ok=True)
    pairs = [(path, target / path.parent.name / path.name) for path in new]
    added = files.publish_all((other, store.file_bytes(path)) for path, other in pairs)
    same = set(paths) - {path for path, one in zip(new, added, strict=True) if one}
    for path in sorted(same):
        other = target / path.parent.name / path.name
        done.compare(other, store.file_bytes(path), reading.record_bytes(other) or b"", path)
    done.added += len(paths) - len(same)
    for folder in {path.parent.name for path in new}:
        files.sync_folder(target / folder)


def merge_pack(pack: Pack, target: Path, done: Merged, invalid: Container[Path]) -> None:
    """Add what a data set's folder has not of a pack: all of it as it is, or a part as a pack."""
    there, new = reading.listing(target), set[Path]()
    ours, loose = there.names, set(there.files)
    packed = {one.place(*at)[0]: at[1].sha256 for one in there.packs for at in packing.placed(one)}
    for folder, one in packing.placed(pack):
        theirs, path = pack.place(folder, one)[0], target / folder / one.name
        if theirs in invalid:
            continue
        if one.name not in ours.get(folder, ()):
            new.add(theirs)
        elif packed.get(path) == one.sha256 and path not in loose:
            done.equal += 1
        else:
            done.compare(path, pack.data(one), reading.record_bytes(path) or b"", pack.path)
    if not new:
        return
    target.mkdir(parents=True, exist_ok=True)
    if len(new) == sum(map(len, pack.entries.values())) and not (target / pack.path.name).exists():
        with files.on_its_way(target) as path:
            shutil.copyfile(pack.path, path)
            files.sync(path)
            files.link(path, target / packs.pack_name(path))
        files.sync_folder(target)
    else:
        packing.write_pack(target, packing.in_pack(pack, new))
    done.added += len(new)
