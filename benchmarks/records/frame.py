"""Keep what was read of a pack, checked and ready: its frame, a file in the user's cache folder.

To decompress records and to check each takes half the time of a comparison. A frame has the same
values, each once. It is named by the pack's hash, by the folders that the pack lies in, and by the
code that has checked the records, so it cannot be out of date. Only valid records are in it: the
others are read, and named, as without a frame. Whoever removes frames loses nothing but time.

They lie beside downloads, not beside packs: what comes with somebody's records is checked here.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from contrastbench.benchmarks.records import schema, store
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.domains.download import cache_folder, write_whole

KEPT_SECONDS = 30 * 24 * 3600.0  # of frames, of which packs may be gone


@cache
def rules() -> str:
    """Return a hash of the code by which records are read, and checked, and framed."""
    modules = (__file__, schema.__file__, store.__file__)
    return hashlib.sha256(b"".join(Path(name).read_bytes() for name in modules)).hexdigest()[:16]


def path_of(pack: Path) -> Path:
    folders = map(store.file_name, pack.parts[-3:-1])
    return cache_folder().joinpath("frames", *folders, f"{pack.stem}-{rules()}")


def kept(pack: Path, make: Callable[[], list[bytes]]) -> list[bytes]:
    """Return the lines of a pack's frame; where there is no whole one they are made, and kept.

    Frames of a month ago go then. A cache folder that cannot be written keeps none.
    """
    path = path_of(pack)
    with suppress(OSError):
        data = path.read_bytes()
        if data[:32] == hashlib.sha256(memoryview(data)[32:]).digest():
            return data[32:].split(b"\n")
    lines = make()
    data = b"\n".join(lines)
    with suppress(OSError):
        write_whole(path, hashlib.sha256(data).digest() + data)
        for other in path.parent.iterdir():
            if other.stat().st_mtime < time.time() - KEPT_SECONDS:
                other.unlink()
    return lines


def framed(records: Mapping[str, Record]) -> bytes:
    """Return records by name as a line: the distinct values of their fields, and where each is."""
    values: dict[bytes, int] = {}

    def places(fields: Fields) -> list[int]:
        return [values.setdefault(to_json(x), len(values)) for x in ([*fields], *fields.values())]

    rows = {
        name: (places({**record, "details": None}), places(record["details"]))
        for name, record in records.items()
    }
    return b"[[%b],%b]" % (b",".join(values), to_json(rows))


def unframed(line: bytes) -> dict[str, Record]:
    """Return the records of a line by name; what they have in common is one object."""
    values, rows = from_json(line)

    def fields(places: Sequence[int]) -> Any:
        names, *own = map(values.__getitem__, places)
        return dict(zip(names, own, strict=True))

    return {k: fields(most) | {"details": fields(details)} for k, (most, details) in rows.items()}
