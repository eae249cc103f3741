"""Make a bundle of a loss and its records, and refuse what is not ready for one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records import files, reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.submission import bundle, cells
from contrastbench.benchmarks.sweeps.plan import Plan
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
        UserError: the loss has no file, no licence or no paper, a cell has no result, the file was
            edited after some of the records were made, or another loss's bundle is there.
    """
    file = own_file(loss)
    plan = cells.suite_plan(suite, loss, results)
    check_unedited(loss, file, plan)
    lacking, of = cells.missing_count(plan)
    if lacking:
        command = f"bench sweep {suite} --loss {loss.name}"
        raise UserError(f"{lacking} of {of} cells have no result yet: run {command}")
    declared = read_declaration(file.with_suffix(".yaml"))
    records = [record for _, record in cells.finished_records(plan)]
    name, sources = portable(loss.name, loss.sources)
    about = {
        **declared.model_dump(),
        "suite": plan.table.name,
        "loss": name,
        "params": loss.params,
        "environments": record_environments(records),
    }
    contents = {f"{bundle.LOSS_FOLDER}{one}": text.encode() for one, text in sources.items()}
    contents |= {cells.record_name(one): bytes_of(one, results) for one in records}
    path = Path(f"{file.stem}-{plan.table.name}.zip")
    check_same_loss(path, name, loss.params)
    files.replace(path, bundle.bundle_bytes(about, contents))
    return path


def check_same_loss(path: Path, name: str, params: Mapping[str, Any]) -> None:
    """Raise if the path is taken by anything but a bundle of the same loss.

    Raises:
        UserError: writing there would lose another loss's bundle, or a file that is none.
    """
    if not path.exists():
        return
    try:
        about = bundle.read_bundle(path).about
    except bundle.Refused:
        raise UserError(f"{path} is no bundle: move it away, then submit again") from None
    if (about.loss, about.params) != (name, dict(params)):
        held = LossSpec(about.loss, about.params).label
        raise UserError(f"{path} is the bundle of {held}: move it away, then submit again")


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


def check_unedited(loss: LossSpec, file: Path, plan: Plan) -> None:
    """Raise if the suite's cells have records of another text of the loss's files, none of this."""
    asked = {setting_of(task.experiment, task.seed) for task in plan.tasks()}
    codes: list[str] = []
    for dataset in reading.dataset_folders(plan.results):
        folder = dataset / store.file_name(loss.complete.name)
        codes += [
            record["loss_code"]
            for record in reading.matching(folder, lambda *_: True)
            if canonical_setting(record["params"], record["recipe"], record["seed"], dataset)
            in asked
        ]
    if codes and loss.code not in codes:
        raise UserError(
            f"{file} was edited after its records were made: restore it, or run bench sweep again"
        )


def setting_of(experiment: Experiment, seed: int) -> str:
    """Return what a cell is but for the text of its loss."""
    recipe = experiment.full_recipe.model_dump(mode="json")
    folder = experiment.folder(Path()).parent
    return canonical_setting(experiment.loss.complete.params, recipe, seed, folder)


def canonical_setting(
    params: Mapping[str, Any], recipe: Mapping[str, Any], seed: int, dataset: Path
) -> str:
    """Return a text that is equal for equal settings on a data set, which its folder names."""
    return store.canonical([params, recipe, seed, *dataset.parts[-2:]])


def record_environments(records: list[Record]) -> list[dict[str, object]]:
    """Return the distinct codes and devices of records."""
    found = {}
    for record in records:
        about = record["environment"]
        chosen = {name: about.get(name) for name in ("commit", "device")}
        versions = {name: text for name, text in about.get("versions", {}).items() if text}
        one = {**chosen, "versions": versions}
        found[store.canonical(one)] = one
    return [found[key] for key in sorted(found)]


def bytes_of(record: Record, results: Path) -> bytes:
    """Return the bytes of a record's file, which may be in a pack."""
    path = store.record_path(results, record)
    data = reading.record_bytes(path)
    if data is None:
        raise UserError(f"{path} was removed meanwhile: submit again")
    return data
