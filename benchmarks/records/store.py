"""Records.

One immutable JSON file for each finished cell, published atomically and never overwritten.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import files
from contrastbench.losses.errors import UserError

SCHEMA = 1
FINAL = (
    "ok",
    "diverged",
)  # a second run would end the same way; oom and failed are worth another try

LONGEST = 240  # bytes of a folder's name, of the 255 that file systems take
SETTLED = 2 * 10**9  # ns; a younger file may change once more within a tick of its clock

Record = dict[str, Any]


IDENTITY = (  # everything that can change a number, besides the seed
    "domain",
    "dataset",
    "loss",
    "loss_code",  # sha256 of a user's own loss; empty for registered ones
    "params",  # after defaults
    "recipe",  # after defaults
    "protocol",
    "data_hash",
)


def key(record: Record) -> str:
    """Sha256 over the record's identity: the same for all seeds of a cell."""
    return digest({name: record[name] for name in IDENTITY})


def path(results: Path, record: Record, suffix: str = "") -> Path:
    """Where the record stands; failed tries stand beside it with a suffix."""
    parent = folder(results, record["domain"], record["dataset"], record["loss"])
    return parent / f"{key(record)[:16]}-seed{record['seed']}{suffix}.json"


def folder(results: Path, domain: str, dataset: str, loss: str) -> Path:
    """The records of a loss on a dataset."""
    return results.joinpath("runs", *map(file_name, (domain, dataset, loss)))


def file_name(text: str) -> str:
    """The text as a folder's name.

    Characters that file systems dislike become underscores; what is too long for them, as a sum of
    many losses may be, ends in a hash instead.

    >>> file_name("csv:my.csv")
    'csv_my.csv'
    """
    name = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in text)
    whole = name.encode()
    if len(whole) <= LONGEST:
        return name
    return f"{whole[: LONGEST - 17].decode(errors='ignore')}-{digest(text)[:16]}"


def canonical(value: Any) -> str:
    """JSON in one form only, so that equal values have equal hashes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(value: Any) -> str:
    """Sha256 over canonical JSON.

    >>> digest({"b": 1, "a": 2.0}) == digest({"a": 2.0, "b": 1})
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def publish(record: Record, path: Path) -> bool:
    """Add the record and make its name survive a power cut; see `add`."""
    added = add(record, path)
    if added:
        sync_folder(path.parent)
    return added


def add(record: Record, path: Path) -> bool:
    """Write the record, whole or not at all; False if another runner was first.

    The link fails where a record stands, so of two runners that finish one cell the second changes
    nothing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        record | {"sha256": digest(record)},
        indent=1,
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )
    try:
        with files.written(path.parent, text + "\n") as temporary:
            os.link(temporary, path)
    except FileExistsError:
        return False
    return True


def sweep(results: Path) -> None:
    """Remove what dead processes of this host have left on its way there."""
    for folder in (results, results / "checkpoints", *results.glob("runs/*/*/*")):
        files.sweep(folder)


def sync_folder(path: Path) -> None:
    """Make a new name in a folder survive a power cut, where the system can."""
    with suppress(OSError, AttributeError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_known: dict[Path, tuple[tuple[int, ...], Record]] = {}  # what was read, by the state of its file


def read(path: Path) -> Record:
    """A record, its checksum verified; a file that has not changed since is not read again.

    Raises:
        UserError: cannot be read, not a whole record, edited by hand, or written by a newer
            version.
    """
    try:
        about = path.stat()
    except OSError:
        return verified(path)  # which says why
    state = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    known = _known.get(path)
    if known and known[0] == state:
        return dict(known[1])
    record = verified(path)
    if time.time_ns() - about.st_ctime_ns > SETTLED:
        _known[path] = state, record
    return dict(record)


def verified(path: Path) -> Record:
    """The file's record, see `read`."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        schema, checksum = record["schema"], record.pop("sha256")
        found = digest(record)  # a ValueError where there is NaN, which is no JSON
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): restore it or delete it") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        schema = None
    if not isinstance(schema, int):
        raise UserError(f"{path} is not a record: delete it and run its cell again")
    if schema > SCHEMA:
        raise UserError(
            f"{path} is of record version {schema}, this contrastbench reads up to {SCHEMA}: "
            "upgrade it"
        )
    if checksum != found:
        raise UserError(
            f"{path} was changed after it was published (sha256 differs): restore it or delete it"
        )
    return dict(record)


def read_all(results: Path, domain: str, dataset: str, loss: str) -> Iterator[Record]:
    """The published records of a loss on a dataset, failed tries left out."""
    for record in read_folder(folder(results, domain, dataset, loss)):
        if record["status"] in FINAL:
            yield record


def read_folder(path: Path) -> Iterator[Record]:
    """All records in a folder by their files' names, failed tries too."""
    return map(read, sorted(path.glob("*.json"), key=lambda file: file.name))
