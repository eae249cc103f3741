"""Verify a bundle: make every cell of its loss anew, and judge by these records alone.

A bundle's own records are a claim. Whatever they say, the standing is that of the records that this
side made. A child process runs the loss; the process that judges never imports it, and knows it by
what it declares (`stand_in`). Of a record that comes back, all that identifies the cell must be
what this side asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from statistics import NormalDist

from contrastbench.benchmarks.comparison.compare import baseline_row
from contrastbench.benchmarks.records import merge, reading, store
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.report.comparison import compared
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.running import reproduction
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.reproduction import Outcome, Spread
from contrastbench.benchmarks.submission import apart, bundle
from contrastbench.benchmarks.submission.bundle import Bundle, Refused, as_refusal
from contrastbench.benchmarks.submission.stand_in import write_stand_ins
from contrastbench.benchmarks.submission.submit import record_name, suite_plan
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.errors import UserError
from contrastbench.losses.registry import is_registered, term_names
from contrastbench.losses.spec import LossSpec

LEVEL = 0.05  # an honest claim's risk, where machines differ as seeds do


@dataclass
class Verification:
    """A bundle under verification, and what is known of it so far."""

    given: Bundle
    folder: Path  # an empty one
    suite: str  # a table, or a sweep file
    places: Sequence[Path]  # folders of this side's records
    data_root: Path | None = None
    quick: bool = False  # the suite's quick part alone
    keep: Path | None = None  # where the records go that are made
    passed: dict[str, str] = field(default_factory=dict)  # by check, with what it found
    problem: tuple[str, str] | None = None  # the check that failed, and why
    code: str = ""  # sha256 that the loss's records name
    made: list[Record] = field(default_factory=list)  # by this side
    differing: list[Outcome] = field(default_factory=list)  # claims
    standing: str = ""

    @property
    def stand_in(self) -> LossSpec:
        """Return the loss as this process knows it."""
        return self.placed("stand-in")

    @property
    def own(self) -> Path:
        """Return the folder of the records of this side, with those that are made."""
        return self.folder / "results"

    def placed(self, folder: str) -> LossSpec:
        """Return the bundle's loss with its files in a folder."""
        about = self.given.about
        return LossSpec(reproduction.placed_loss(about.loss, self.folder / folder), about.params)


def run_checks(case: Verification) -> Verification:
    """Run the checks of a bundle; the first that fails is the last.

    Raises:
        UserError: this side lacks something, such as data.
    """
    for name, check in CHECKS.items():
        try:
            case.passed[name] = check(case)
        except Refused as error:
            case.problem = case.problem or (name, str(error))
            break
    return case


def check_loss(case: Verification) -> str:
    """Check that the loss is made of the bundle's files and obeys the laws, and what it declares.

    Raises:
        Refused: it does not, or is for another suite.
    """
    suite, about = load_table(case.suite), case.given.about
    if suite.name != about.suite:
        raise Refused(f"it is for {about.suite}, not for {suite.name}")
    sources = case.given.under(bundle.LOSS_FOLDER)
    terms = [one for one in as_refusal(term_names, about.loss) if not is_registered(one)]
    if {f.as_posix() for one in terms for f in bundle.own_files(one) or [Path("/")]} - set(sources):
        raise Refused(f"{about.loss} names a file that is not in the bundle")
    for name, data in sources.items():
        path = case.folder / "loss" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    named = {str(case.folder / "loss" / one): one for one in terms}
    asked = {"loss": case.placed("loss").name, "params": about.params, "terms": list(named)}
    said = apart.ask(case.folder / "declared", apart.SECONDS, do="declare", **asked)
    write_stand_ins({named[k]: v for k, v in said["classes"].items()}, case.folder / "stand-in")
    as_refusal(lambda: case.stand_in.complete)
    case.code = str(said["code"])
    wrong = [f"{name}: {detail}" for name, passed, _, detail in said["laws"] if not passed]
    if wrong:
        raise Refused(str(wrong[0]))
    declined = [name for name, _, word, _ in said["laws"] if word == "declined"]
    return f"{len(said['laws'])} laws" + f", declined: {', '.join(declined)}" * bool(declined)


def check_cells(case: Verification) -> str:
    """Make every cell that the suite asks for, stage by stage.

    Raises:
        Refused: a cell has no result.
    """
    sources = [one for one in case.places if reading.dataset_folders(one)]
    columns = load_table(case.suite).columns.values()
    names = {tuple(map(store.file_name, (one.domain, one.dataset))) for one in columns}
    merge.merge_records(sources, case.own, names)
    base = baseline_row(resolve(load_table(case.suite, quick=case.quick), None, case.own))
    if not any(cell.records for cell in base.cells.values()):
        places = " and ".join(map(str, case.places))
        raise UserError(
            f"no records of {base.name} in {places}: bench sweep {case.suite} "
            f"--only 'row={base.name}' makes them, and --results names them"
        )
    while tasks := missing(case):
        for _, some in groupby(tasks, key=lambda task: task.experiment.key):
            for record in made_records(case, list(some)):
                keep_record(case, record)
    return f"{len(case.made)} cells, all that {case.given.about.suite} asks of the loss"


def missing(case: Verification) -> list[Task]:
    """Return the cells that are asked for next."""
    work = case.suite, case.stand_in, case.own, case.quick
    return [one for one in as_refusal(suite_plan, *work).tasks() if one.state == "missing"]


def made_records(case: Verification, tasks: Sequence[Task]) -> Iterator[Record]:
    """Run the seeds of one experiment in a child process, and yield their records.

    Those that an earlier verification has kept are not made again.

    Raises:
        Refused: one of them is not what was asked for.
        UserError: the data are not here.
    """
    from contrastbench.benchmarks.running.opening import prepare_cell

    work = tasks[0].experiment
    options = Options(case.own, case.data_root, "cpu")
    cell, _ = prepare_cell(work, tasks[0].seed, options, None)
    registered = is_registered(work.loss.name)
    code = {"loss_code": "" if registered else case.code}
    wanted = {task.seed: {**replace(cell, seed=task.seed).identity, **code} for task in tasks}
    kept = {
        seed: case.keep and reading.find_record(store.record_path(case.keep, one))
        for seed, one in wanted.items()
    }
    folder = case.folder / "cells" / f"{work.key[:16]}-{tasks[0].seed}"
    if seeds := [seed for seed, record in kept.items() if record is None]:
        loss = work.loss.name if registered else case.placed("loss").name
        about = {"loss": loss, "params": work.loss.params, "recipe": work.recipe, "seeds": seeds}
        root = case.data_root and str(case.data_root.absolute())
        where = {"domain": work.domain, "dataset": work.dataset, "data_root": root}
        limit = apart.SECONDS * len(seeds)
        apart.ask(folder, limit, do="run", **about, **where)
    for seed, one in wanted.items():
        label = f"{tasks[0].label} seed {seed}"
        yield kept[seed] or returned_record(folder / "results", one, label)


def returned_record(results: Path, wanted: Fields, label: str) -> Record:
    """Return the record of a cell that a child has published.

    Raises:
        Refused: there is none, it is another's, or it is no result.
    """
    path = store.record_path(results, wanted)
    data = apart.read_bytes(path)
    if data is None:
        raise Refused(f"{label}: the loss's process made no record of it")
    record = as_refusal(store.checked_record, data, path, "what the loss's process made")
    if record["status"] not in store.FINAL_STATUSES:
        raise Refused(f"{label} is {record['status']}")
    return record


def keep_record(case: Verification, record: Record) -> None:
    """Keep a record that was made, and give the judging process one of the stand-in."""
    case.made.append(record)
    if case.keep:
        store.publish_record(record, store.record_path(case.keep, record))
    known = record | {"loss_code": case.stand_in.code if record["loss_code"] else ""}
    known |= {"key": store.key(known)}
    store.publish_record(known, store.record_path(case.own, known))


def compare_claim(case: Verification) -> str:
    """Compare the bundle's records with those made here, and say what is another."""
    claimed = case.given.under(bundle.RUNS_FOLDER)
    ours = [record for record in case.made if record["loss_code"]]
    spreads, found = dict[str, Spread](), []
    for record in ours:
        name, data = record_name(record).removeprefix(bundle.RUNS_FOLDER), record["dataset"]
        if data not in spreads:
            spreads[data] = widened(reproduction.spread_of(record, [case.own]), len(ours))
        found.append(claim(name, claimed.pop(name, b""), record, spreads[data]))
    case.differing = [one for one in found if one and not agrees(one)]
    wrong = {
        "claimed otherwise": len(case.differing),
        "not claimed": found.count(None),
        "beyond what the suite asks for": len(claimed),
    }
    if any(wrong.values()):
        case.problem = "claim", ", ".join(f"{n} {what}" for what, n in wrong.items() if n)
    equal = sum(map(is_equal, filter(None, found)))
    return f"{equal} of {len(ours)} cells are equal to the bit"


def widened(spread: Spread, count: int) -> Spread:
    """Return limits such that so many honest cells are rarely beyond one of them."""
    normal = NormalDist()
    factor = normal.inv_cdf(1 - LEVEL / 2 / count) / normal.inv_cdf(0.975)
    return Spread({name: factor * limit for name, limit in spread.limits.items()}, spread.cells)


def claim(name: str, data: bytes, record: Record, spread: Spread) -> Outcome | None:
    """Return a claimed record beside the one of this side; None: there is none to read."""
    try:
        return Outcome(store.checked_record(data, Path(name), name), record, spread)
    except UserError:
        return None


def is_equal(one: Outcome) -> bool:
    """Return whether a claim is what was found here, but for times and circumstances."""
    return one.equal and reading.same_result(one.record, one.again)


def agrees(one: Outcome) -> bool:
    """Return whether a claim is what two machines may find; on like machines that is the same."""
    return is_equal(one) or (not one.equal and one.within)


def judge(case: Verification) -> str:
    """Find where the loss stands, by the records of this side."""
    table = load_table(case.suite, losses=[case.stand_in], quick=case.quick)
    case.standing = " ".join(said(compared(resolve(table, None, case.own))))
    return ""


CHECKS: dict[str, Callable[[Verification], str]] = {
    "loss": check_loss,
    "cells": check_cells,
    "claim": compare_claim,
    "standing": judge,
}
