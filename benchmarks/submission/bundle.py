"""Read and write bundles: a loss with the records that its author claims, as one zip file.

    bundle.json     the suite, the loss, its licence and paper, and the sha256 of each other file
    loss/mine.py    the files of the loss, as its records have them
    runs/...        the records, each as the file that it was

Nothing in a bundle is signed, and its checksums find damage alone. `verify` makes records anew.
"""

import hashlib
import io
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError
from contrastbench.losses.expression import file_and_class, is_sum, split_sum

BUNDLE_FILE = "bundle.json"
LOSS_FOLDER, RUNS_FOLDER = "loss/", "runs/"
MEMBER_NAME = re.compile(r"(loss|runs)(/[^/\\:\x00-\x1f]+)+")  # of a file within
MAX_BUNDLE_BYTES = 2**28  # bytes of all files together
LICENCE = r"^[A-Za-z0-9][A-Za-z0-9 .+()-]{1,99}$"  # an expression of SPDX names
PAPER = r"^https://[^\s<>\"|]{4,300}$"
PRINTABLE = Field(max_length=300, pattern=r"^[^\x00-\x1f\x7f]*$")


class Refused(UserError):
    """A bundle that is not as it must be."""


class About(Strict):
    """The contents of `bundle.json`."""

    format: Literal[2] = 2
    suite: str = PRINTABLE
    loss: str = PRINTABLE  # with paths within loss/
    params: dict[str, Any]
    licence: str = Field(pattern=LICENCE)
    paper: str = Field(pattern=PAPER)
    files: dict[str, str]  # sha256 by name


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read whole; its files have the sha256 that it states."""

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


def bytes_sha256(data: bytes) -> str:
    """Return the sha256 of bytes as text."""
    return hashlib.sha256(data).hexdigest()


def bundle_bytes(about: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return the bundle's bytes, which are the same for the same contents.

    Args:
        about: the values of `About`, without the checksums.
        files: by name.
    """
    named = {name: bytes_sha256(data) for name, data in sorted(files.items())}
    checked = About.model_validate({**about, "files": named})
    text = json.dumps(checked.model_dump(mode="json"), indent=1, sort_keys=True)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {
            BUNDLE_FILE: text.encode() + b"\n",
            **dict(sorted(files.items())),
        }.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def read_bundle(path: Path) -> Bundle:
    """Read a bundle into memory and check its names and checksums.

    Raises:
        UserError: there is no such file.
        Refused: it is no bundle, or a file in it is not the one that it states.
    """
    try:
        if path.stat() and not path.is_file():  # a link to a device has no end
            raise UserError(f"{path} is no file: name a bundle")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): name a bundle") from None
    files = dict(members(data))
    if BUNDLE_FILE not in files:
        raise Refused(f"the file has no {BUNDLE_FILE}: give one that bench submit wrote")
    about = about_of(files.pop(BUNDLE_FILE))
    for name in sorted({*files, *about.files}):
        check_file(name, files.get(name), about.files.get(name))
    return Bundle(about, files, bytes_sha256(data))


def members(data: bytes) -> dict[str, bytes]:
    """Return the files of an archive by name.

    Raises:
        Refused: it is no archive, is larger than a bundle may be, or has a name twice.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if sum(one.file_size for one in infos) > MAX_BUNDLE_BYTES:
                raise Refused(f"the bundle has more than {MAX_BUNDLE_BYTES // 2**20} MiB")
            if len({one.filename for one in infos}) < len(infos):
                raise Refused("the bundle has two files of one name")
            return {one.filename: archive.read(one) for one in infos}
    except (
        *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, ValueError),
        *(EOFError, OSError, IndexError, struct.error),
    ) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"the bundle is no zip file that can be read ({error})") from None


def about_of(data: bytes) -> About:
    """Return the statements of a bundle on itself."""
    try:
        return About.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise Refused(f"{BUNDLE_FILE}: {where}: {first['msg']}") from None


def check_file(name: str, data: bytes | None, stated: str | None) -> None:
    """Raise unless a file has a name of bundles and the sha256 that the bundle states."""
    if not MEMBER_NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise Refused(f"{name!r} is no name of a file in a bundle")
    if data is None or stated is None:
        raise Refused(f"{name} is {'stated but missing' if stated else 'there but not stated'}")
    if bytes_sha256(data) != stated:
        raise Refused(f"{name} is not the file that the bundle states (sha256 differs)")
