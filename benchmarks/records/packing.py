"""`bench pack`: the finished records of each dataset into one pack, and back.

A loose file or an old pack is removed once all that it holds stands in a pack that is on the disk,
has its name and was read back. So a kill at any moment leaves each record where it was, or in both
places, which is harmless. Others may run, pack or read meanwhile.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from contrastbench.benchmarks.records import files, packs, reading, store
from contrastbench.benchmarks.records.packs import Pack, Row
from contrastbench.benchmarks.records.reading import unless_gone
from contrastbench.benchmarks.records.store import Record
from contrastbench.losses.errors import UserError

NAME = re.compile(r"([0-9a-f]{16})-seed([0-9]{1,10})\.json")  # of a finished record's file
SAMPLES = 12  # records in a dictionary: more would hardly fit in


class Source(NamedTuple):
    """A record that is to be packed."""

    path: Path  # of its file, as it is or as it would be
    where: Path  # the file or the pack that it is in
    data: Callable[[], bytes]

    @property
    def order(self) -> tuple[str, str, int]:
        """Where it stands among all of its dataset."""
        match = NAME.fullmatch(self.path.name)
        assert match, "a finished record's file has such a name"
        return self.path.parent.name, match[1], int(match[2])

    @property
    def record(self) -> Record:
        """What its bytes say, checked."""
        return store.checked(self.data(), self.path, self.where)


def pack(results: Path) -> Iterator[str]:
    """Pack each dataset that has loose finished records or several packs; a line for each.

    Raises:
        UserError: there is nothing, a file is no record, two records contradict each other, or the
            folder cannot be written.
    """
    yield from each(results, pack_dataset)


def unpack(results: Path) -> Iterator[str]:
    """Make the records of packs the files that they were; a line for each dataset that had one.

    Raises:
        UserError: as `pack` does.
    """
    yield from each(results, unpack_dataset)


def each(results: Path, do: Callable[[Path], str]) -> Iterator[str]:
    """Do it with each dataset, and say what was done."""
    found = reading.datasets(results)
    if not found:
        raise UserError(f"{results} holds no records: name a folder that holds runs/")
    for dataset in found:
        with packs.writable(dataset):
            line = reading.repeated(partial(do, dataset))
        if line:
            yield f"{dataset.relative_to(results / 'runs').as_posix()}: {line}"


def pack_dataset(dataset: Path) -> str:
    """Pack a dataset; what was done, if anything."""
    old = packs.of(dataset)
    there = [source for folder in reading.folders(dataset) for source in finished(folder, old)]
    sources = without_doubles(there)
    packed = {pack.path for pack in old}
    loose = [source.where for source in there if source.where not in packed]
    if not loose and len(old) < 2:
        return ""
    dictionary = b"".join(source.data() for source in sources[:: len(sources) // SAMPLES + 1])
    new = published(dataset, dictionary[-packs.WINDOW :], sources)
    before = megabytes(gone := [*loose, *(packed - {new})])
    remove(gone)
    return f"{len(sources)} records in {new.name}, {before} before, {megabytes([new])} now"


def finished(folder: Path, old: Iterable[Pack]) -> list[Source]:
    """The finished records of a loss, those in packs first."""
    sources = [
        Source(folder / name, pack.path, partial(pack.file, folder.name, name))
        for pack in old
        for name in pack.checksums(folder.name)
    ]
    loose = [folder / name for name in reading.loose(folder) if NAME.fullmatch(name)]
    return sources + [
        Source(path, path, partial(unless_gone, path, store.file_of)) for path in loose
    ]


def without_doubles(sources: Iterable[Source]) -> list[Source]:
    """Each record once, in order; the first of those that agree."""
    kept: dict[Path, Source] = {}
    for source in sources:
        other = kept.setdefault(source.path, source)
        if other is not source and other.data() != source.data():
            reading.check_agree(source.path, other, source)
    return sorted(kept.values(), key=lambda source: source.order)


def published(dataset: Path, dictionary: bytes, sources: list[Source]) -> Path:
    """The new pack, on the disk and read back."""
    with files.on_its_way(dataset) as path:
        packs.write(path, dictionary, (row_of(source, dictionary) for source in sources))
        read_back(Pack(path), sources)
        return packs.publish(path)


def row_of(source: Source, dictionary: bytes) -> tuple[Row, Record]:
    """A record as a pack holds it, and what it is of."""
    data = source.data()
    record = store.checked(data, source.path, source.where)
    seconds = record.get("seconds")
    row = Row(
        source.path.parent.name,
        record["key"],
        record["seed"],
        record["status"],
        float(seconds) if isinstance(seconds, int | float) else None,
        store.digest(record),
        packs.deflated(data, dictionary),
    )
    return row, record


def read_back(pack: Pack, sources: Iterable[Source]) -> None:
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
    old = packs.of(dataset)
    count = 0
    for folder in reading.folders(dataset):
        folder.mkdir(exist_ok=True)
        sources = [source for source in finished(folder, old) if source.where != source.path]
        added_all = files.publish_all((source.path, source.data()) for source in sources)
        for source, added in zip(sources, added_all, strict=True):
            count += added
            if not added and source.data() != source.path.read_bytes():
                loose = Source(source.path, source.path, source.path.read_bytes)
                reading.check_agree(source.path, source, loose)
        files.sync_folder(folder)
    remove([pack.path for pack in old])
    return f"{count} records are files again" if old else ""


def remove(paths: list[Path]) -> None:
    """Remove what stands elsewhere too."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        files.sync_folder(folder)


def megabytes(paths: Iterable[Path]) -> str:
    """The size of files."""
    return f"{sum(path.stat().st_size for path in paths) / 1e6:.2f} MB"
