"""Make a bundle of a loss and its records, and refuse what is not ready for one."""

from pathlib import Path

from contrastbench.benchmarks.records import files, reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.submission import bundle
from contrastbench.benchmarks.sweeps.plan import Plan, make_plan
from contrastbench.domains import strict_yaml
from contrastbench.errors import UserError
from contrastbench.losses.code import portable
from contrastbench.losses.expression import file_and_class, is_sum, split_sum
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
    states, later = [task.state for task in plan.tasks()], len(plan.later_tasks())
    if lacking := sum(one in ("missing", "failed") for one in states) + later:
        raise UserError(
            f"{lacking} of {len(states) + later} cells have no result yet with {own[0]} as it is: "
            f"run bench sweep {suite} --loss {loss.name}"
        )
    declared = read_declaration(own[0].with_suffix(".yaml"))
    name, sources = portable(loss.name, loss.sources)
    records = filter(None, (seed_record(t.experiment, t.seed, results) for t in plan.tasks()))
    contents = {f"{bundle.LOSS_FOLDER}{one}": text.encode() for one, text in sources.items()}
    for record in records:
        if record["loss_code"]:  # not the trials of a registered loss that it becomes
            found = reading.find(store.record_path(results, record))
            contents[record_name(record)] = found.data() if found else b""
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
    terms = [loss] if not is_sum(loss) else [term for _, term in split_sum(loss)]
    return [found[0] for found in map(file_and_class, terms) if found]


def suite_plan(suite: str, loss: LossSpec, results: Path, quick: bool = False) -> Plan:
    """Return the cells that a suite, or its quick part, asks of a loss."""
    return make_plan(suite, [], None, False, None, results, losses=[loss], quick=quick)


def seed_record(experiment: Experiment, seed: int, results: Path) -> Record | None:
    """Return the record of a seed: an ok one on the preferred data, else one that diverged."""
    by_data = experiment.ok_by_data(results).values()
    ok = next((records[seed] for records in by_data if seed in records), None)
    diverged = (one for one in experiment.finished(results) if one["seed"] == seed)
    return ok or next(diverged, None)


def record_name(record: Record) -> str:
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
