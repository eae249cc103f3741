"""Archives and checkpoints that are out to harm, and a watch on what reading them touches."""

import io
import os
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tarfile import CHRTYPE, DIRTYPE, FIFOTYPE, LNKTYPE, SYMTYPE
from typing import Any

from counts import dice, times

Files = dict[str, bytes]
MANY = 3000  # members more than anybody needs
BOMB = bytes(3 << 20)  # what a bomb unpacks to: more than the tests' readers take
WATCHED = (  # prefixes of what the interpreter announces
    *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate"),
    *("os.chmod", "os.chown", "os.system", "os.exec", "os.posix_spawn", "os.fork", "shutil."),
    *("subprocess.Popen", "socket.", "pickle.find_class"),
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_seen: list[str] | None = None
_secret = _only = ""


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None or not event.startswith(_only):
        return
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & WRITING and path != os.devnull
        if writes or (_secret and str(path).startswith(_secret)):
            _seen.append(f"open {path}")
    elif event.startswith(WATCHED):
        _seen.append(f"{event} {arguments}")


sys.addaudithook(_hear)  # for the rest of the process: it cannot be taken off


@contextmanager
def watched(secret: Path, only: str = "") -> Iterator[list[str]]:
    """What is written, run, connected to or unpickled meanwhile, or read of the secret's folder."""
    global _seen, _secret, _only
    _seen, _secret, _only = [], str(secret), only
    try:
        yield _seen
    finally:
        _seen = None


def tree(root: Path) -> dict[str, Any]:
    """All that stands in a folder: names, kinds, bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else path.lstat().st_mode
        for path in sorted(root.rglob("*"))
    }


class Reduced:
    """Whoever unpickles it makes the canary's file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.canary),)


def pickled(canary: Path, protocol: int = 4) -> bytes:
    """A pickle that makes the canary's folder."""
    return pickle.dumps(Reduced(canary), protocol)


Entries = list[tuple[Any, bytes]]  # of names or headers, with contents
# of files, the name of the first and the folder of a canary: other files, or an archive's bytes
Trick = Callable[[Files, str, Path], Files | Entries | bytes]
Tricks = dict[str, dict[str, Trick]]  # by what becomes of the archive
READ, REFUSED, EITHER = "read as it is", "refused", "either"
OF_BOTH: Tricks = {  # of zips and of tars
    READ: {
        "a path out of the folder": lambda f, n, c: {
            **f,
            **dict.fromkeys(("../../canary/owned", "a/../../../canary/owned"), b"x"),
        },
        "an absolute path": lambda f, n, c: {**f, str(c / "owned"): b"x"},
        "very many files": lambda f, n, c: {**{f"x/{k}": b"" for k in range(MANY)}, **f},
    },
    REFUSED: {
        "a bomb": lambda f, n, c: {**f, n: BOMB},
        "names in capitals": lambda f, n, c: {k.swapcase(): v for k, v in f.items()},
        "a pickle": lambda f, n, c: {**f, n: pickled(c / "owned")},
        "nothing": lambda f, n, c: {},
    },
}


def rest(files: Files, first: str) -> Entries:
    return [item for item in files.items() if item[0] != first]


def instead(files: Files, first: str, header: Any, content: bytes = b"") -> Entries:
    """Another header in the first member's place."""
    return [(header, content), *rest(files, first)]


def beside(files: Files, *more: tuple[Any, bytes]) -> Entries:
    return [*more, *files.items()]


# -- zip ---------------------------------------------------------------------------------------


def zipped(files: Files | Entries, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            if isinstance(name, str):
                name = zipfile.ZipInfo(name)  # of no time, so that the bytes are always these
            archive.writestr(name, content, how)
    return file.getvalue()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    """A member of another kind than a file."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def with_fields(data: bytes, local: dict[int, bytes], central: dict[int, bytes]) -> bytes:
    """A zip with other bytes in the headers of its first member."""
    changed = bytearray(data)
    for start, fields in ((0, local), (data.index(b"PK\1\2"), central)):
        for place, value in fields.items():
            changed[start + place : start + place + len(value)] = value
    return bytes(changed)


def doubled(files: Files, first: str) -> bytes:
    """Two members of one name: readers differ in which they take."""
    other = first[:-1] + chr(ord(first[-1]) ^ 1)
    data = zipped([*files.items(), (other, b"1, 2\n2, 1\n")])
    return data.replace(other.encode(), first.encode())


def overlapping(files: Files, first: str) -> bytes:
    """A directory whose second entry is the first one's bytes again, as in the best bombs."""
    data = bytearray(zipped(files))
    starts = [k for k in range(len(data)) if data[k : k + 4] == b"PK\1\2"]
    data[starts[1] + 42 : starts[1] + 46] = data[starts[0] + 42 : starts[0] + 46]
    return bytes(data)


LINK, DEVICE, PIPE, FOLDER = 0o120777, 0o020666, 0o010666, 0o040755
ZIPS: Tricks = {
    READ: {
        **OF_BOTH[READ],
        "a path of Windows": lambda f, n, c: {**f, "..\\..\\canary\\owned": b"", "C:\\owned": b""},
        "a linked folder": lambda f, n, c: beside(
            f, (entry("link", LINK), bytes(c)), ("link/owned", b"")
        ),
        "a device and a pipe": lambda f, n, c: beside(
            f, (entry("d", DEVICE), b""), (entry("p", PIPE), b"")
        ),
        "a wanted file that says it is a device": lambda f, n, c: instead(
            f, n, entry(n, DEVICE), f[n]
        ),
        "a bomb that nobody asks for": lambda f, n, c: {**f, "bomb": BOMB},
        "a name of 65,535 letters": lambda f, n, c: {**f, "x" * 65_535: b"x"},
        "a name of nothing but dots": lambda f, n, c: {**f, "..": b"x", ".": b"x"},
        "a program before it": lambda f, n, c: b"#!/bin/sh\nmkdir canary\n" + zipped(f),
        "a zip behind a zip": lambda f, n, c: zipped({n: b"x"}) + zipped(f),
    },
    REFUSED: {
        **OF_BOTH[REFUSED],
        "a link to a secret": lambda f, n, c: instead(f, n, entry(n, LINK), bytes(c / "secret")),
        "a folder in a wanted file's place": lambda f, n, c: instead(f, n, entry(f"{n}/", FOLDER)),
        "two files of one name": lambda f, n, c: doubled(f, n),
        "entries that overlap": lambda f, n, c: overlapping(f, n),
        "an LZMA bomb": lambda f, n, c: zipped({**f, n: BOMB}, zipfile.ZIP_LZMA),
        "a bzip2 bomb": lambda f, n, c: zipped({**f, n: BOMB}, zipfile.ZIP_BZIP2),
        "a bomb that says it is small": lambda f, n, c: with_fields(
            zipped({n: BOMB, **dict(rest(f, n))}), {22: b"\1\0\0\0"}, {24: b"\1\0\0\0"}
        ),
        "a zip in a zip": lambda f, n, c: {**f, n: zipped({n: zipped(f)})},
    },
    EITHER: {
        "a wanted file's name out of the folder": lambda f, n, c: {
            f"../../canary/{Path(n).name}": b"1, 2\n2, 1\n",
            **f,
        },
    },
}


def spoiled(pack: Callable[[Files], bytes], number: int) -> Trick:
    """Return what writes an archive with other bytes in one of its headers."""

    def make(files: Files, first: str, canary: Path) -> bytes:
        rng, data = dice(f"header {number}"), bytearray(pack(files))
        starts = (0, max(0, data.find(b"PK\1\2")), max(0, data.rfind(b"PK\5\6")))
        place, length = rng.choice(starts) + rng.randrange(34), rng.choice((1, 2, 4))
        data[place : place + length] = rng.choice((b"\0", b"\1", b"\x7f", b"\xff")) * length
        return bytes(data)

    return make


# -- tar ---------------------------------------------------------------------------------------


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> Any:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    info.devmajor, info.devminor = 1, 5  # /dev/zero
    return info


def tarred(files: Files | Entries, pax: dict[str, str] | None = None) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", pax_headers=pax or {}) as tar:
        for info, content in files.items() if isinstance(files, dict) else files:
            if isinstance(info, str):
                info = member(info, size=len(content))
            tar.addfile(info, io.BytesIO(content) if info.isfile() else None)
    return file.getvalue()


def resigned(header: bytes, fields: dict[int, bytes]) -> bytes:
    """A header with other bytes and a checksum that agrees."""
    block = bytearray(header[:512])
    for place, value in fields.items():
        block[place : place + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + header[512:]


def sparse(name: str) -> bytes:
    """A file of GNU's that has a hole of a terabyte."""
    header = member(name, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT)
    hole = b"%011o\0%011o\0" % (0, 0)
    return resigned(header, {386: hole, 483: b"\x80" + (1 << 40).to_bytes(11, "big")})


def pax(text: bytes) -> bytes:
    """A header of keywords."""
    info = member("pax", tarfile.XHDTYPE, size=len(text))
    return info.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % 512)


def said(key: str, value: str) -> bytes:
    length = len(key) + len(value) + 3
    length += len(str(length + len(str(length))))
    return f"{length} {key}={value}\n".encode()


HUGE = b"\x80" + (1 << 42).to_bytes(11, "big")
TARS: Tricks = {
    READ: {
        **OF_BOTH[READ],
        "a linked folder": lambda f, n, c: beside(
            f, (member("link", SYMTYPE, str(c)), b""), ("link/owned", b"x")
        ),
        "keywords of a megabyte": lambda f, n, c: tarred(f, {"comment": "x" * (1 << 20)}),
    },
    REFUSED: {
        **OF_BOTH[REFUSED],
        "a link to a secret": lambda f, n, c: instead(f, n, member(n, SYMTYPE, str(c / "secret"))),
        "a hard link to a secret": lambda f, n, c: instead(
            f, n, member(n, LNKTYPE, str(c / "secret"))
        ),
        "a device": lambda f, n, c: instead(f, n, member(n, CHRTYPE)),
        "a pipe": lambda f, n, c: instead(f, n, member(n, FIFOTYPE)),
        "a folder in a wanted file's place": lambda f, n, c: instead(f, n, member(n, DIRTYPE)),
        "two files of one name": lambda f, n, c: [(n, b"1\t2\n"), *f.items()],
        "a file of four terabytes": lambda f, n, c: resigned(tarred(f), {124: HUGE}),
        "a hole of a terabyte": lambda f, n, c: sparse(n) + tarred(rest(f, n)),
        "another name by keywords": lambda f, n, c: (
            pax(said("path", "../../canary/owned")) + tarred(f)
        ),
        "another size by keywords": lambda f, n, c: pax(said("size", str(1 << 50))) + tarred(f),
        "keywords without end": lambda f, n, c: pax(b"99999999999 path=x\n") + tarred(f),
        "a long name that is not there": lambda f, n, c: (
            resigned(member("././@LongLink", tarfile.GNUTYPE_LONGNAME).tobuf(), {124: HUGE})
            + tarred(f)
        ),
        "a tar in a tar": lambda f, n, c: {**f, n: tarred(f)},
        "a zip": lambda f, n, c: zipped(f),
    },
    EITHER: {
        "a bomb that nobody asks for": lambda f, n, c: {"bomb": BOMB, **f},
    },
}
for number in range(times(200)):
    ZIPS[EITHER][f"a header that is spoiled, {number}"] = spoiled(zipped, number)
    TARS[EITHER][f"a header that is spoiled, {number}"] = spoiled(tarred, number)
