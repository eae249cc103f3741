"""Make and read bundles: a loss with the records that its author claims, as one zip file.

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

from pydantic import ValidationError
from pydantic_core import from_json

from contrastbench.benchmarks.records import files, schema, store
from contrastbench.benchmarks.submission import loss_files
from contrastbench.benchmarks.sweeps.plan import make_plan, unfinished_tasks
from contrastbench.domains.reading import contents, member, member_names, reading
from contrastbench.errors import UserError
from contrastbench.losses.expression import file_and_class, names
from contrastbench.losses.source import portable
from contrastbench.losses.spec import LossSpec

BUNDLE_FILE, LOSS_FOLDER = "bundle.json", "loss/"
MAX_BUNDLE_BYTES = 2**28  # bytes of all files together
FIX = "give one that bench submit wrote"


class About(loss_files.LossDeclaration):
    """The contents of `bundle.json`."""

    format: Literal[3] = 3
    suite: schema.Name
    loss: schema.Name  # with paths within loss/
    params: dict[str, Any]


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read whole."""

    about: About
    sources: Mapping[str, str]  # the loss's files by their paths within loss/
    claims: Mapping[str, bytes]  # the records, and whatever else there is
    digest: str  # sha256 of the zip file


def bundle_loss(suite: str, loss: LossSpec, results: Path) -> Path:
    """Write the bundle of a loss into the current folder, and return its path.

    A loss without a file, a licence, a paper or a result of each cell raises `UserError`.
    """
    file = next((own[0] for own in map(file_and_class, names(loss.name)) if own), None)
    if not file:
        raise UserError(f"{loss.name} has no file of its own: give --loss FILE.py:CLASS")
    plan = make_plan(suite, results=results, losses=[loss])
    tasks = [*plan.tasks(), *plan.later_tasks()]
    if lacking := unfinished_tasks(tasks):
        have = f"{len(lacking)} of {len(tasks)} cells have no result yet with {file} as it is"
        raise UserError(f"{have}: run bench sweep {suite} --loss {loss.name}")
    declared = loss_files.read_declaration(file.with_suffix(".yaml"))
    name, sources = portable(loss.name, loss.sources)
    loss_files.check_loss_files(sources)
    contents = {f"{LOSS_FOLDER}{path}": text.encode() for path, text in sources.items()}
    for work, seed, *_ in tasks:
        record = work.ok_by_seed(results).get(seed) or next(work.finished(results, seed))
        if record["loss_code"]:  # not the trials of a registered loss that it becomes
            contents[store.record_path(Path(), record).as_posix()] = store.serialise_record(record)
    about = {"suite": plan.table.name, "loss": name, "params": loss.params}
    path = Path(f"{file.stem}-{plan.table.name}.zip")
    data = bundle_bytes({**declared.model_dump(), **about}, contents)
    if not files.publish_file(path, data) and path.read_bytes() != data:
        raise UserError(f"{path} is another file: move it away, then submit again")
    return path


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
    """Read a bundle into memory; nothing is written."""
    data = contents(path, MAX_BUNDLE_BYTES, FIX)
    with reading(path, FIX, "is no bundle"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = {name: archive.getinfo(name).file_size for name in member_names(archive)}
        if sum(sizes.values()) > MAX_BUNDLE_BYTES:
            raise UserError(f"{path} unpacks to more than {MAX_BUNDLE_BYTES >> 20} MiB: {FIX}")
        files = {name: member(archive, name, size) for name, size in sizes.items()}
        own = [name for name in sizes if name.startswith(LOSS_FOLDER)]
        sources = {name.removeprefix(LOSS_FOLDER): files.pop(name).decode() for name in own}
        loss_files.check_loss_files(sources)
        about = dict(from_json(files.pop(BUNDLE_FILE, b""), allow_inf_nan=False))
    if not sources:
        raise UserError(f"{path} has no file of a loss: {FIX}")
    try:
        return Bundle(About.model_validate(about), sources, files, hashlib.sha256(data).hexdigest())
    except ValidationError as error:
        raise UserError(f"{path}: {BUNDLE_FILE}: {schema.first_of(error)}: {FIX}") from None
