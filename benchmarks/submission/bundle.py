"""Read and write bundles: a loss with the records that its author claims, as one zip file.

    bundle.json     the suite, the loss, its licence and paper
    loss/mine.py    the files of the loss, as its records have them
    runs/...        the records, each as the file that it was

Nothing in a bundle is signed. `verify` makes its records anew.
"""

import hashlib
import io
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from contrastbench.benchmarks.records import store
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError
from contrastbench.losses.expression import file_and_class, is_sum, split_sum

T = TypeVar("T")
BUNDLE_FILE = "bundle.json"
LOSS_FOLDER, RUNS_FOLDER = "loss/", "runs/"
MEMBER_NAME = re.compile(r"(loss|runs)(/[^/\\:\x00-\x1f]+)+")  # of a file within
MAX_PARTS = 20  # of a name: folders and the file
MAX_BUNDLE_BYTES = 2**28  # bytes of all files together
DAMAGE = (  # that reading an archive raises
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, ValueError),
    *(EOFError, OSError, IndexError, struct.error),
)
PRINTABLE = Field(max_length=300, pattern=r"^[^\x00-\x1f\x7f]*$")


class Refused(UserError):
    """A bundle that is not as it must be."""


class LossDeclaration(Strict):
    """What an author says of a loss, in a YAML file beside it."""

    licence: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .+()-]{1,99}$")  # of SPDX names
    paper: str = Field(pattern=r"^https://[^\s<>\"|]{4,300}$")


class About(LossDeclaration):
    """The contents of `bundle.json`."""

    format: Literal[3] = 3
    suite: str = PRINTABLE
    loss: str = PRINTABLE  # with paths within loss/
    params: dict[str, Any]


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read whole."""

    about: About
    files: Mapping[str, bytes]
    digest: str  # sha256 of the zip file

    def under(self, folder: str) -> dict[str, bytes]:
        """Return the files of a folder by their names within it."""
        some = {name: data for name, data in self.files.items() if name.startswith(folder)}
        return {name.removeprefix(folder): data for name, data in sorted(some.items())}


def own_files(loss: str) -> list[Path]:
    """Return the files that the name of a loss or of a sum gives.

    >>> own_files("infonce + 0.5*a/mine.py:Mine")
    [PosixPath('a/mine.py')]
    """
    terms = [loss] if not is_sum(loss) else [term for _, term in split_sum(loss)]
    return [found[0] for found in map(file_and_class, terms) if found]


def bundle_bytes(about: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return the bundle's bytes, which are the same for the same contents."""
    text = json.dumps(About.model_validate(about).model_dump(), indent=1, sort_keys=True)
    contents = {BUNDLE_FILE: text.encode() + b"\n", **dict(sorted(files.items()))}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in contents.items():  # of no date
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def read_bundle(path: Path) -> Bundle:
    """Read a bundle into memory and check its names.

    Raises:
        UserError: there is no such file.
        Refused: it is no bundle.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():  # a link to a device has no end
            raise UserError(f"{path} is no file: name a bundle")
        check_size(size)
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): name a bundle") from None
    try:
        files = members(data)
    except Refused:
        raise
    except DAMAGE as error:
        raise Refused(f"the bundle is no zip file that can be read ({error})") from None
    if BUNDLE_FILE not in files:
        raise Refused(f"the file has no {BUNDLE_FILE}: give one that bench submit wrote")
    about = about_of(files.pop(BUNDLE_FILE))
    check_names(files)
    return Bundle(about, files, hashlib.sha256(data).hexdigest())


def check_names(names: Collection[str]) -> None:
    """Raise unless files of these names can stand beside each other, and some are a loss."""
    folders = set[str]()
    for name in names:
        *above, _ = parts = name.split("/")
        lengths = [len(one.encode(errors="replace")) for one in parts]
        if (
            not MEMBER_NAME.fullmatch(name)
            or {".", ".."} & set(parts)
            or len(parts) > MAX_PARTS
            or max(lengths) > store.MAX_NAME_BYTES
        ):
            raise Refused(f"{name[:80]!r} is no name of a file in a bundle")
        folders |= {"/".join(above[:end]) for end in range(1, len(parts))}
    if both := sorted(folders & set(names)):
        raise Refused(f"{both[0]!r} is a file and a folder in the bundle")
    if LOSS_FOLDER.rstrip("/") not in folders:
        raise Refused("the bundle has no file of a loss: give one that bench submit wrote")


def members(data: bytes) -> dict[str, bytes]:
    """Return the files of an archive by name.

    Raises:
        Refused: it is larger than a bundle may be, or has a name twice.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        check_size(sum(one.file_size for one in infos))
        if len({one.filename for one in infos}) < len(infos):
            raise Refused("the bundle has two files of one name")
        return {one.filename: archive.read(one) for one in infos}


def check_size(size: int) -> None:
    """Raise unless so many bytes may be in a bundle."""
    if size > MAX_BUNDLE_BYTES:
        raise Refused(f"the bundle has more than {MAX_BUNDLE_BYTES // 2**20} MiB")


def about_of(data: bytes) -> About:
    """Return the statements of a bundle on itself."""
    try:
        return About.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise Refused(f"{BUNDLE_FILE}: {where}: {first['msg']}") from None


def as_refusal(work: Callable[..., T], *about: Any) -> T:
    """Return what a function returns; a mistake in the bundle is a refusal."""
    try:
        return work(*about)
    except (UserError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise Refused(str(error) or type(error).__name__) from None
