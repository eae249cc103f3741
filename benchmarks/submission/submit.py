"""Make a bundle of a loss and its records, and refuse what is not ready for one."""

from pathlib import Path

from pydantic import Field

from contrastbench.benchmarks.records import files, reading, store
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.submission import bundle, cells
from contrastbench.domains import strict_yaml
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError
from contrastbench.losses.code import portable
from contrastbench.losses.spec import LossSpec

DECLARATION_FIX = (
    "write two lines, licence: MIT and paper: https://..., as your paper and its code have them"
)


class LossDeclaration(Strict):
    """The YAML file beside a loss."""

    licence: str = Field(pattern=bundle.LICENCE)
    paper: str = Field(pattern=bundle.PAPER)


def bundle_loss(suite: str, loss: LossSpec, results: Path) -> Path:
    """Write the bundle of a loss into the current folder, and return its path.

    Raises:
        UserError: the loss has no file, no licence or no paper, a cell has no result (as where the
            file was edited since), or another file is there.
    """
    file = own_file(loss)
    plan = cells.suite_plan(suite, loss, results)
    lacking, of = cells.missing_count(plan)
    if lacking:
        command = f"bench sweep {suite} --loss {loss.name}"
        raise UserError(
            f"{lacking} of {of} cells have no result yet with {file} as it is: run {command}"
        )
    declared = read_declaration(file.with_suffix(".yaml"))
    records = [record for _, record in cells.finished_records(plan)]
    name, sources = portable(loss.name, loss.sources)
    about = {
        **declared.model_dump(),
        "suite": plan.table.name,
        "loss": name,
        "params": loss.params,
    }
    contents = {f"{bundle.LOSS_FOLDER}{one}": text.encode() for one, text in sources.items()}
    contents |= {cells.record_name(one): bytes_of(one, results) for one in records}
    path = Path(f"{file.stem}-{plan.table.name}.zip")
    data = bundle.bundle_bytes(about, contents)
    if path.exists() and path.read_bytes() != data:
        raise UserError(f"{path} is another file: move it away, then submit again")
    files.replace(path, data)
    return path


def own_file(loss: LossSpec) -> Path:
    """Return the first file of a user's own loss.

    Raises:
        UserError: the loss has none, as a registered one or one of a package.
    """
    own = bundle.own_files(loss.name)
    if not own:
        raise UserError(f"{loss.name} has no file of its own: give --loss FILE.py:CLASS")
    return own[0]


def read_declaration(path: Path) -> LossDeclaration:
    """Return the licence and the paper that stand in a file.

    Raises:
        UserError: there is no such file, or one of the two is missing or wrong.
    """
    if not path.is_file():
        raise UserError(f"{path} is missing: {DECLARATION_FIX}")
    try:
        return strict_yaml.read_yaml(path).as_model(LossDeclaration)
    except UserError as error:
        raise UserError(
            f"{error}; {path.name} beside the loss holds its licence and paper alone"
        ) from None


def bytes_of(record: Record, results: Path) -> bytes:
    """Return the bytes of a record's file, which may be in a pack."""
    path = store.record_path(results, record)
    data = reading.record_bytes(path)
    if data is None:
        raise UserError(f"{path} was removed meanwhile: submit again")
    return data
