"""Pack the finished records of each dataset into one file, and unpack them.

A loose file or an old pack is removed once all that it holds stands in a pack that is on the disk,
was read back, and has a private name, so that nobody else removes it. A pack is undone under a
private name, too. So a kill at any moment leaves each record where it was, or in both places, which
is harmless. Others may run, pack, undo or read meanwhile.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from contrastbench.benchmarks.records import files, packs, reading, schema, store
from contrastbench.benchmarks.records.pack_writing import WrittenRecord, write_pack
from contrastbench.benchmarks.records.packs import Pack, PackRow
from contrastbench.benchmarks.records.reading import unless_gone
from contrastbench.benchmarks.records.schema import InvalidRecord
from contrastbench.benchmarks.records.store import Record
from contrastbench.errors import UserError

# of a finished record's file
RECORD_FILE_NAME = re.compile(r"([0-9a-f]{16})-seed([0-9]{1,10})\.json")


class PackSource(NamedTuple):
    """A record that will be packed."""

    path: Path  # of its file, as it is or as it would be
    where: Path  # the file or the pack that it is in
    data: Callable[[], bytes]

    @property
    def order(self) -> tuple[str, str, int]:
        """Return the sort key of the record within its dataset."""
        match = RECORD_FILE_NAME.fullmatch(self.path.name)
        assert match, "a finished record's file has such a name"
        return self.path.parent.name, match[1], int(match[2])

    @property
    def record(self) -> Record:
        """Return the record after checking its bytes."""
        return store.checked_record(self.data(), self.path, self.where)


def pack(results: Path) -> Iterator[str]:
    """Pack each dataset with loose finished records or several packs, and yield a line for each.

    Raises:
        UserError: there is nothing, a file is no record, two records contradict each other, or the
            folder cannot be written.
    """
    yield from each_dataset(results, pack_dataset)


def unpack(results: Path) -> Iterator[str]:
    """Make the records of packs the files that they were; a line for each dataset that had one.

    Raises:
        UserError: as `pack` does.
    """
    yield from each_dataset(results, unpack_dataset)


def each_dataset(results: Path, do: Callable[[Path], str]) -> Iterator[str]:
    """Apply a function to each dataset, and yield its messages."""
    found = reading.dataset_folders(results)
    if not found:
        raise UserError(f"{results} holds no records: name a folder that holds runs/")
    for dataset in found:
        with packs.writable(dataset):
            packs.recover(dataset)
            line = reading.until_found(partial(do, dataset))
        if line:
            yield f"{dataset.relative_to(results / 'runs').as_posix()}: {line}"


def pack_dataset(dataset: Path) -> str:
    """Pack one dataset, and return a message if there was something to do.

    Invalid records are named, and stay or become loose files.
    """
    old = packs.public_packs(dataset)
    folders = reading.loss_folders(dataset)
    loose = [source for folder in folders for source in loose_sources(folder) if is_valid(source)]
    if not loose and len(old) < 2:
        return ""
    packed = [source for pack in old for source in sources_of(pack)]
    sources = without_doubles([*packed, *loose])
    gone = [*(source.where for source in loose), *(pack.path for pack in old)]
    before = megabytes(gone)
    with private_pack(dataset, sources) as new:
        now = megabytes([new])
        remove_files([path for path in gone if path != packs.public(new)])
    return f"{len(sources)} records in {packs.public(new).name}, {before} before, {now} now"


def loose_sources(folder: Path) -> list[PackSource]:
    """Return the finished records of a loss in loose files."""
    names = (name for name in reading.loose(folder) if RECORD_FILE_NAME.fullmatch(name))
    return [source_of(folder / name) for name in names]


def source_of(path: Path) -> PackSource:
    """Return the record of a loose file."""
    return PackSource(path, path, partial(unless_gone, path, store.file_bytes))


def is_valid(source: PackSource) -> bool:
    """Return whether a record's fields have their types and bounds; say it if not."""
    try:
        return bool(source.record)
    except InvalidRecord as error:
        schema.warn(error)
        return False


def sources_of(pack: Pack) -> list[PackSource]:
    """Check a pack, make its invalid records loose files, and return the others."""
    invalid = pack.check()
    sources = [source for name in pack.folders for source in in_pack(pack, name)]
    for source in sources:
        if source.path in invalid:
            schema.warn(invalid[source.path])
            source.path.parent.mkdir(exist_ok=True)
            files.publish_file(source.path, source.data())
    return [source for source in sources if source.path not in invalid]


def in_pack(pack: Pack, name: str) -> list[PackSource]:
    """Return the records of a loss in a pack."""
    folder = pack.path.parent / name
    return [
        PackSource(folder / name, pack.path, partial(pack.file, folder.name, name))
        for name in pack.checksums(folder.name)
    ]


def without_doubles(sources: Iterable[PackSource]) -> list[PackSource]:
    """Return each record once, in order; of equal ones the first."""
    kept: dict[Path, PackSource] = {}
    for source in sources:
        other = kept.setdefault(source.path, source)
        if other is not source:
            check_same_result(other, source)
    return sorted(kept.values(), key=lambda source: source.order)


@contextmanager
def private_pack(dataset: Path, sources: list[PackSource]) -> Iterator[Path]:
    """Write a pack and read it back; during the block it has a private name."""
    with files.on_its_way(dataset) as path:
        write_pack(path, map(written, sources))
        read_back(Pack(path), sources)
        with packs.private_name(path, path.with_name(packs.pack_name(path))) as new:
            yield new


def written(source: PackSource) -> WrittenRecord:
    """Return a record with its row in a pack and its identity."""
    data = source.data()
    record = store.checked_record(data, source.path, source.where)
    seconds = record.get("seconds")
    row = PackRow(
        source.path.parent.name,
        record["key"],
        record["seed"],
        record["status"],
        float(seconds) if isinstance(seconds, int | float) else None,
        from_json(data)["sha256"],
    )
    return WrittenRecord(row, record, data)


def read_back(pack: Pack, sources: Iterable[PackSource]) -> None:
    """Raise unless the pack gives the sources' bytes."""
    rows = (row for folder in pack.folders for row in pack.rows(folder))
    for row, source in zip(rows, sources, strict=True):
        if (row.folder, row.name) != (*source.order[:1], source.path.name) or (
            pack.data(row) != source.data()
        ):
            raise UserError(
                f"{source.where} changed while it was packed: nothing was removed; try again"
            )


def unpack_dataset(dataset: Path) -> str:
    """Make a dataset's packs loose files; what was done, if anything."""
    old = packs.public_packs(dataset)
    count = sum(unpack_records(dataset, pack) for pack in old)
    return f"{count} records are files again" if old else ""


def unpack_records(dataset: Path, pack: Pack) -> int:
    """Make the records of a pack loose files, and return how many were none."""
    pack.check()
    with suppress(FileNotFoundError), packs.private_name(pack.path, pack.path) as private:
        count = sum(made_loose(dataset / name, in_pack(pack, name)) for name in pack.folders)
        remove_files([private])
        return count
    return 0  # another process has packed or undone it meanwhile


def made_loose(folder: Path, sources: list[PackSource]) -> int:
    """Make packed records of a loss loose files, and return how many were none."""
    folder.mkdir(exist_ok=True)
    added_all = files.publish_all((source.path, source.data()) for source in sources)
    count = 0
    for source, added in zip(sources, added_all, strict=True):
        count += added
        if not added:
            with suppress(FileNotFoundError):  # the file was packed meanwhile
                check_same_result(source, source_of(source.path))
    files.sync_folder(folder)
    return count


def check_same_result(one: PackSource, other: PackSource) -> None:
    """Raise if two runs of a cell found different things."""
    if one.data() != other.data():
        reading.check_agree(one.path, one, other)


def remove_files(paths: list[Path]) -> None:
    """Remove what stands elsewhere too."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        files.sync_folder(folder)


def megabytes(paths: Iterable[Path]) -> str:
    """Return the size of files in megabytes."""
    return f"{sum(path.stat().st_size for path in paths) / 1e6:.2f} MB"
