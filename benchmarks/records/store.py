"""Store records of finished cells.

One immutable JSON file for each finished cell, published atomically and never overwritten.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from contrastbench.benchmarks.records import files, schema
from contrastbench.domains.reading import contents
from contrastbench.errors import UserError

SCHEMA = 1
# a second run would end the same way; oom and failed are worth another try
FINAL_STATUSES = ("ok", "diverged")
MAX_RECORD_BYTES = 2**24  # bytes of one record's file, and of anything else in a pack
MAX_NAME_BYTES = 240  # bytes of a folder's name, of the 255 that file systems take
CLOCK_TICK_NS = 2 * 10**9  # ns; a younger file may change once more within a tick of its clock
Record = schema.Record
Fields = Mapping[str, Any]  # some or all of a record
FileState = tuple[int, ...]
# everything that can change a number, besides the seed: with defaults filled in; loss_code is the
# sha256 of a user's own loss, empty for registered ones
IDENTITY = ("domain", "dataset", "loss", "loss_code", "params", "recipe", "protocol", "data_hash")
LARGE_RECORD = 2**16  # bytes


def key(record: Fields) -> str:
    """Return the sha256 of the record's identity, which is the same for all seeds of a cell."""
    return json_digest({name: record[name] for name in IDENTITY})


def cell_of(record: Record) -> tuple[str, int]:
    """Return what tells a record from others of its experiment."""
    return record["data_hash"], record["seed"]


def record_path(results: Path, record: Fields, suffix: str = "") -> Path:
    """Return the path of a record; failed runs have a suffix."""
    parent = loss_folder(results, record["domain"], record["dataset"], record["loss"])
    return parent / f"{key(record)[:16]}-seed{record['seed']}{suffix}.json"


def loss_folder(results: Path, domain: str, dataset: str, loss: str) -> Path:
    return results.joinpath("runs", *map(file_name, (domain, dataset, loss)))


@lru_cache(maxsize=2**12)
def file_name(text: str) -> str:
    """Turn a text into a folder name.

    Characters that file systems dislike become underscores; what is too long for them, as a sum of
    many losses may be, ends in a hash instead.

    >>> file_name("csv:my.csv")
    'csv_my.csv'
    """
    name = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in text)
    if not name.strip("."):  # the folder itself, or the one above it
        name = "_" * len(name)
    whole = name.encode()
    if len(whole) <= MAX_NAME_BYTES:
        return name
    return f"{whole[: MAX_NAME_BYTES - 17].decode(errors='ignore')}-{json_digest(text)[:16]}"


def canonical(value: Any) -> str:
    """Write JSON in one canonical form, so that equal values have equal hashes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def json_digest(value: Any) -> str:
    """Return the sha256 of canonical JSON.

    >>> json_digest({"b": 1, "a": 2.0}) == json_digest({"a": 2.0, "b": 1})
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def publish_record(record: Record, path: Path) -> bool:
    """Add the record and make its name survive a power cut; see `add`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if added := files.publish_file(path, serialise_record(record)):
        files.sync_folder(path.parent)
    return added


def serialise_record(record: Record) -> bytes:
    """Serialise a record with its checksum as the bytes of its file."""
    whole = record | {"sha256": json_digest(record)}
    text = json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


_known: dict[Path, tuple[FileState, Record]] = {}


def read_record(path: Path) -> Record:
    """Read a record and check its checksum."""
    return parsed(file_bytes(path), path)


def read_valid(path: Path) -> Record:
    """Read a record and check its fields and its place, see `valid`.

    An unchanged file is not read again.
    """
    state = state_of(path)
    known = _known.get(path)
    if known and known[0] == state:
        return known[1].copy()
    record = valid(read_record(path), path.parts, path)
    if state and time.time_ns() - state[-1] > CLOCK_TICK_NS:  # else it may still change
        _known[path] = state, record
    return record.copy()


def state_of(path: Path) -> FileState:
    """Return values that change with the file; they are empty where there is none."""
    try:
        about = path.stat()
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def file_bytes(path: Path) -> bytes:
    return contents(path, MAX_RECORD_BYTES, "restore it or delete it")


def valid(record: Record, parts: Sequence[str], where: object) -> Record:
    """Return the record after checking its fields and its name.

    Args:
        parts: of the path of its file, or of what that would be outside of its pack.

    Raises:
        UserError: it stands where another belongs.
        InvalidRecord: a field has another type, or is out of bounds; or a result has the name of a
            try without one, and would stand beside another result of its cell.
    """
    schema.check_fields(record, where)
    folders = [file_name(record[name]) for name in ("domain", "dataset", "loss")]
    expected = (*folders, f"{record['key'][:16]}-seed{record['seed']}")
    if (*parts[-4:-1], parts[-1].split(".")[0]) != expected:
        raise UserError(f"{where} holds the record of {'/'.join(expected)}: move it back there")
    if (parts[-1].count(".") == 1) != (record["status"] in FINAL_STATUSES):  # tries: .failed-1
        raise schema.invalid(where, f"a record that is {record['status']} has another name")
    return record


def checked_record(data: bytes, path: Path, where: object) -> Record:
    """Return the record in a file's bytes, after checking its key; see `valid`."""
    record = valid(parsed(data, where), path.parts, where)
    check_key(record, where)
    return record


def check_key(identity: Record, where: object) -> None:
    own = key(identity)
    if own != identity["key"]:
        raise UserError(f"{where} holds the record of {own[:16]}: rename it back")


def parsed(data: bytes, path: object, checksum: bool = True) -> Record:
    """Parse the record in a file's bytes as `read_record` does.

    Args:
        checksum: whether the record's own is computed; else another one was.
    """
    try:
        record = from_json(data)  # half the time of json.loads, the same values
        version, own = record["schema"], record.pop("sha256")
        whole = not checksum or json_digest(record) == own  # NaN, which is no JSON, raises
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        version = None
    if not isinstance(version, int):
        raise UserError(f"{path} is not a record: delete it and run its cell again")
    if version > SCHEMA:
        raise UserError(
            f"{path} has record version {version}, but this contrastbench reads up to {SCHEMA}: "
            "upgrade contrastbench"
        )
    if not whole:
        raise UserError(
            f"{path} was changed after it was published (sha256 differs): restore it or delete it"
        )
    return cast(Record, dict(record))


class NotWritten(UserError):
    """The disk did not take a record, or has no room for one that is to be made."""

    def __init__(self, message: str, record: Record | None = None) -> None:
        super().__init__(message)
        self.record = record


def check_writable(folder: Path) -> None:
    """Raise if records cannot be published there, which takes room and a link.

    Raises:
        NotWritten: the disk is full.
        UserError: the folder is not writable for another reason.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with files.temporary_file(folder, bytes(LARGE_RECORD)) as file:
            linked = files.temporary(folder)
            files.link(file, linked)
            linked.unlink()
    except OSError as error:
        said, fix = f"cannot write to {folder} ({error.strerror})", "another folder with --results"
        if error.errno in files.DISK_FULL:
            there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
            said += f": {files.free_mib(there):.0f} MiB are free, make room or name"
            raise NotWritten(f"{said} {fix}") from None
        raise UserError(f"{said}: name {fix}") from None
