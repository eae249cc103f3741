"""Keep what was read of a pack, checked and ready: its frame, a file in the user's cache folder.

To decompress records and to check each takes half the time of a comparison. A frame has the same
values, each once. It is named by the pack's hash, by the folders that the pack lies in, and by the
code that has checked the records, so it cannot be out of date. Only valid records are in it: the
others are read, and named, as without a frame. Whoever removes frames loses nothing but time.

They lie beside downloads, not beside packs: what comes with somebody's records is checked here.
Python reads them as its own modules' files, in half the time of JSON, and runs nothing of them.
"""

import hashlib
import marshal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from contrastbench.benchmarks.records import schema, store
from contrastbench.benchmarks.records.store import Record
from contrastbench.domains.download import cache_folder, write_whole

Framed = Mapping[str, Mapping[str, Record]]  # by the folder of a loss and the name of a file
KEPT_SECONDS = 30 * 24 * 3600.0  # of frames, of which packs may be gone


@cache
def rules() -> str:
    """Return a hash of the code by which records are read, and checked, and framed."""
    modules = (__file__, schema.__file__, store.__file__)
    code = (sys.version.encode(), *(Path(name).read_bytes() for name in modules))
    return hashlib.sha256(b"".join(code)).hexdigest()[:16]


def path_of(pack: Path) -> Path:
    folders = map(store.file_name, pack.parts[-3:-1])
    return cache_folder().joinpath("frames", *folders, f"{pack.stem}-{rules()}")


def kept(pack: Path, make: Callable[[], Framed]) -> Framed:
    """Return the records of a pack's frame; where there is no whole one it is made, and kept.

    Frames of a month ago go then. A cache folder that cannot be written keeps none.
    """
    path = path_of(pack)
    with suppress(OSError):
        data = path.read_bytes()
        if data[:32] == hashlib.sha256(memoryview(data)[32:]).digest():
            return marshal.loads(memoryview(data)[32:])
    data = framed(make())
    with suppress(OSError):
        write_whole(path, hashlib.sha256(data).digest() + data)
        for other in path.parent.iterdir():
            if other.stat().st_mtime < time.time() - KEPT_SECONDS:
                other.unlink()
    return marshal.loads(data)


def framed(losses: Framed) -> bytes:
    """Return records as bytes, in which keys and values that are equal are one object."""
    values: dict[bytes, Any] = {}

    def once(value: Any) -> Any:
        if isinstance(value, dict):
            value = {once(key): once(part) for key, part in value.items()}
        return values.setdefault(to_json(value), value)

    whole = {
        loss: {name: {once(k): once(part) for k, part in one.items()} for name, one in some.items()}
        for loss, some in losses.items()
    }
    return marshal.dumps(whole)
