"""Files that are removed, cut or have a flipped bit: one line names them, or nothing changed."""

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from contrastbench.losses import UserError


def full_disk(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def damages(data: bytes, flips: int, rng: random.Random) -> Iterator[bytes]:
    """The bytes cut at 20 places, then with one bit of each copy flipped."""
    yield from (data[: len(data) * share // 17] for share in range(17))
    yield from (data[:-end] for end in (1, 2, 8))
    yield from flipped(data, flips, rng)


def flipped(data: bytes, flips: int, rng: random.Random) -> Iterator[bytes]:
    """Copies with one bit flipped in each."""
    for _ in range(flips):
        place = rng.randrange(len(data))
        byte = data[place] ^ 1 << rng.randrange(8)
        yield data[:place] + bytes([byte]) + data[place + 1 :]


def attack(
    path: Path,
    read: Callable[[], str],
    flips: int,
    named: str = "",
    checked: bool = False,
    rng: random.Random | None = None,
    missed: bool = True,
) -> int:
    """How many damages of a file were refused; the file is whole again at the end.

    Args:
        read: its content or a hash of it, read anew at every call.
        flips: how many bits are flipped.
        named: what the line has, if not the file's name.
        checked: the format has checksums, so that what is not refused is read as it was.
        rng: chooses the bits; by a fixed seed where it is left out.
        missed: a file that is gone is refused, not left out.
    """
    data, whole, said, others = path.read_bytes(), read(), [], 0

    def read_once() -> None:
        nonlocal others
        try:
            others += read() != whole
        except UserError as error:
            said.append(str(error))

    path.unlink()
    read_once()
    assert len(said) == 1 or not missed, "a missing file"
    for damage in damages(data, flips, rng or random.Random(0)):
        path.unlink(missing_ok=True)  # a reader may still have the old one in its memory
        path.write_bytes(damage)
        read_once()
    path.write_bytes(data)
    names = [path.name, *([named] if named else [])]
    unnamed = [text for text in said if not any(name in text for name in names)]
    assert [*unnamed, *(text for text in said if "\n" in text)] == []
    assert not (checked and others)
    assert read() == whole
    return len(said)
