"""The union of folders of records.

What is published in one is published in the other, and nothing is replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Record
from contrastbench.losses.errors import UserError

INCIDENTAL = (
    "seconds",
    "peak_memory_mib",
    "environment",
    "details",
)  # two runs of a cell may differ in these


@dataclass
class Merged:
    """What a merge did."""

    added: int = 0
    equal: int = 0
    unequal: list[str] = field(default_factory=list)


def merge(sources: Sequence[Path], results: Path) -> Merged:
    """Publish the sources' records in results; of unequal ones the first stays, and both are named.

    Raises:
        UserError: a source has no records, or one of them is not as it was published; nothing has
            been done then. Or results cannot be written; what was added before stays.
    """
    incoming = [(path, checked(path, source)) for source in sources for path in paths(source)]
    done, folders = Merged(), set[Path]()
    for path, record in incoming:
        target = results / "runs" / path.relative_to(path.parents[3])
        if not target.exists() and add(record, target):
            done.added += 1
            folders.add(target.parent)
        elif agree(store.read(target), record):
            done.equal += 1
        else:
            done.unequal.append(
                f"{target}: {brief(store.read(target))}, but {brief(record)} in {path}"
            )
    for folder in folders:
        store.sync_folder(folder)
    return done


def add(record: Record, target: Path) -> bool:
    """Whether the record was added; False if there is one already."""
    try:
        return store.add(record, target)
    except OSError as error:
        raise UserError(
            f"cannot write {target} ({error.strerror}): make room or name another --results"
        ) from None


def paths(source: Path) -> list[Path]:
    """The records of a results folder."""
    files = sorted(source.glob("runs/*/*/*/*.json"))
    if not files:
        raise UserError(f"{source} holds no records: name a folder that holds runs/")
    return files


def checked(path: Path, source: Path) -> Record:
    """A record that stands where it belongs."""
    record = store.read(path)
    try:
        expected = store.path(source, record)
    except KeyError as error:
        raise UserError(f"{path} is not a record: it has no {error.args[0]}") from None
    if path.parent != expected.parent or path.name.split(".")[0] != expected.stem:
        raise UserError(f"{path} is the record of {expected}: give it its name back")
    return record


def agree(one: Record, other: Record) -> bool:
    """Whether two runs of one cell found the same.

    A detail that only one release writes contradicts nothing.
    """
    shared = [
        key
        for key in one["details"].keys() & other["details"].keys()
        if not key.startswith("seconds")
    ]
    results = [
        {key: value for key, value in record.items() if key not in INCIDENTAL}
        for record in (one, other)
    ]
    return results[0] == results[1] and all(
        one["details"][key] == other["details"][key] for key in shared
    )


def brief(record: Record) -> str:
    """Its main number and where it comes from."""
    if record["status"] != "ok":
        return str(record["status"])
    commit = (record["environment"].get("commit") or "an installed package")[:8]
    return f"{record['main']} {record['metrics'][record['main']]:.4f} ({commit})"
