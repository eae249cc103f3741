"""Make a bundle of a loss and its records, and refuse what is not ready for one."""

from pathlib import Path

from contrastbench.benchmarks.records import files, store
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.submission import bundle
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.plan import Plan, make_plan
from contrastbench.domains import strict_yaml
from contrastbench.errors import UserError
from contrastbench.losses.code import portable
from contrastbench.losses.expression import file_and_class
from contrastbench.losses.registry import term_names
from contrastbench.losses.spec import LossSpec


def bundle_loss(suite: str, loss: LossSpec, results: Path) -> Path:
    """Write the bundle of a loss into the current folder, and return its path.

    Raises:
        UserError: the loss has no file, no licence or no paper, a cell has no result (as where the
            file was edited since), or another file is there.
    """
    own = own_files(loss.name)
    if not own:
        raise UserError(f"{loss.name} has no file of its own: give --loss FILE.py:CLASS")
    plan = suite_plan(suite, loss, results)
    tasks, later = plan.tasks(), len(plan.later_tasks())
    if lacking := sum(task.state in ("missing", "failed") for task in tasks) + later:
        raise UserError(
            f"{lacking} of {len(tasks) + later} cells have no result yet with {own[0]} as it is: "
            f"run bench sweep {suite} --loss {loss.name}"
        )
    declared = read_declaration(own[0].with_suffix(".yaml"))
    name, sources = portable(loss.name, loss.sources)
    contents = {f"{bundle.LOSS_FOLDER}{path}": text.encode() for path, text in sources.items()}
    for record in (seed_record(task, results) for task in tasks):
        if record["loss_code"]:  # not the trials of a registered loss that it becomes
            contents[record_name(record)] = store.serialise_record(record)
    about = {"suite": plan.table.name, "loss": name, "params": loss.params}
    path = Path(f"{own[0].stem}-{plan.table.name}.zip")
    data = bundle.bundle_bytes({**declared.model_dump(), **about}, contents)
    if path.exists() and path.read_bytes() != data:
        raise UserError(f"{path} is another file: move it away, then submit again")
    files.replace(path, data)
    return path


def own_files(loss: str) -> list[Path]:
    """Return the files that the name of a loss or of a sum gives.

    >>> own_files("infonce + 0.5*a/mine.py:Mine")
    [PosixPath('a/mine.py')]
    """
    return [own[0] for own in map(file_and_class, term_names(loss)) if own]


def suite_plan(suite: str, loss: LossSpec, results: Path, quick: bool = False) -> Plan:
    """Return the cells that a suite, or its quick part, asks of a loss."""
    return make_plan(suite, [], None, False, None, results, losses=[loss], quick=quick)


def seed_record(task: Task, results: Path) -> Record:
    """Return the record of a finished cell: an ok one on the preferred data, else another."""
    ok = task.experiment.ok_by_seed(results).get(task.seed)
    return ok or next(task.experiment.finished(results, task.seed))


def record_name(record: Fields) -> str:
    """Return the name of a record's file within a folder of results."""
    return store.record_path(Path(), record).as_posix()


def read_declaration(path: Path) -> bundle.LossDeclaration:
    """Return the licence and the paper that stand in a file.

    Raises:
        UserError: there is no such file, or one of the two is missing or wrong.
    """
    if not path.is_file():
        raise UserError(
            f"{path} is missing: write two lines, licence: MIT and paper: https://..., as your "
            "paper and its code have them"
        )
    return strict_yaml.read_yaml(path).as_model(bundle.LossDeclaration)
