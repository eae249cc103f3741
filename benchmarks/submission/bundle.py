"""Read and write bundles: a loss with the records that its author claims, as one zip file.

    bundle.json     the suite, the loss, its licence and paper
    loss/mine.py    the files of the loss, as its records have them
    runs/...        the records, each as the file that it was

Nothing in a bundle is signed. `verify` makes its records anew.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from contrastbench.domains.reading import member, member_names, reading
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError

BUNDLE_FILE, LOSS_FOLDER = "bundle.json", "loss/"
MAX_BUNDLE_BYTES = 2**28  # bytes of all files together
PRINTABLE = Field(max_length=300, pattern=r"^[^\x00-\x1f\x7f]*$")
FIX = "give one that bench submit wrote"


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
    sources: Mapping[str, str]  # the loss's files by their paths within loss/
    claims: Mapping[str, bytes]  # the records, and whatever else there is
    digest: str  # sha256 of the zip file


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
    """Read a bundle into memory; nothing is written.

    Raises:
        UserError: there is no such file, or it is no bundle.
    """
    if not path.is_file():  # a link to a device has no end
        raise UserError(f"{path} is no file: name a bundle")
    check_size(path, path.stat().st_size)
    data = path.read_bytes()
    with reading(path, FIX, "is no bundle"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = member_names(archive)
        check_size(path, sum(member.file_size for member in archive.infolist()))
        files = {name: member(archive, name, MAX_BUNDLE_BYTES) for name in names}
        own = [name for name in names if name.startswith(LOSS_FOLDER)]
        sources = {name.removeprefix(LOSS_FOLDER): files.pop(name).decode() for name in own}
    if not sources:
        raise UserError(f"{path} has no file of a loss: {FIX}")
    try:
        about = About.model_validate_json(files.pop(BUNDLE_FILE, b""))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (BUNDLE_FILE, *first["loc"])))
        raise UserError(f"{path}: {where}: {first['msg']}: {FIX}") from None
    return Bundle(about, sources, files, hashlib.sha256(data).hexdigest())


def check_size(path: Path, size: int) -> None:
    """Raise unless so many bytes may be in a bundle."""
    if size > MAX_BUNDLE_BYTES:
        raise UserError(f"{path} has more than {MAX_BUNDLE_BYTES // 2**20} MiB: {FIX}")
