"""Verify a bundle: make every cell of its loss anew, and judge by these records alone.

A bundle's own records are a claim. Whatever they say, the standing is that of the records that this
side made. A child process runs the loss; the process that judges never imports it, and knows it by
what it declares. All that identifies a record that comes back must be what this side asked for.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from contrastbench.benchmarks.comparison.compare import baseline_row
from contrastbench.benchmarks.records import merge, reading, schema, store
from contrastbench.benchmarks.report.comparison import compared
from contrastbench.benchmarks.report.words import rendered, said
from contrastbench.benchmarks.running import reproduction
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.reproduction import Outcome, spread_of
from contrastbench.benchmarks.submission import apart
from contrastbench.benchmarks.submission.bundle import Bundle
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.errors import UserError, plural, tell
from contrastbench.losses.expression import file_and_class
from contrastbench.losses.registry import is_registered, term_names
from contrastbench.losses.spec import LossSpec

LEVEL = 0.05  # an honest claim's risk, where machines differ as seeds do
STAND_IN = "stand-in"  # folder of the loss as this process knows it
OURS = "results"  # folder of the records of this side, with those that are made


@dataclass
class Verification:
    """A bundle under verification, and what is known of it so far."""

    given: Bundle
    folder: Path  # an empty one
    suite: str  # a table, or a sweep file
    places: Sequence[Path]  # folders of this side's records
    data_root: Path  # own data may lie here
    quick: bool = False  # the suite's quick part alone, of which nothing is verified
    keep: Path | None = None  # where the records go that are made
    verified: bool = False  # all checks have passed; after a quick look its part agrees
    code: str = ""  # sha256 that the loss's records name
    made: dict[str, store.Record] = field(default_factory=dict)  # here, by file names
    checks: list[tuple[str, str, str]] = field(default_factory=list)  # with what each found
    differing: list[Outcome] = field(default_factory=list)  # claims
    standing: str = ""

    def placed(self, folder: str) -> LossSpec:
        """Return the bundle's loss with its files in a folder."""
        about = self.given.about
        return LossSpec(reproduction.placed_loss(about.loss, self.folder / folder), about.params)


def comment(given: Bundle, case: Verification | None = None) -> str:
    """Return what was found as Markdown that fits into a comment; before that, what to read."""
    text = rendered("verification.md.j2", given=given, case=case)
    placed = rf"{re.escape(str(case.folder))}/(loss/|stand-in/)?" if case else r"\Z"
    return re.sub(placed, "", text)  # files have the names that the bundle gives them


def run_checks(case: Verification) -> None:
    """Run the checks of a bundle; where the loss stands does not depend on what it claims.

    Raises:
        UserError: this side lacks something, such as data.
    """
    for name, check in (("loss", check_loss), ("cells", check_cells), ("claim", compare_claim)):
        try:
            case.checks.append((name, "passed", check(case)))
        except apart.Refused as error:
            case.checks.append((name, "**failed**", str(error)))
            return
    case.verified = True


def check_loss(case: Verification) -> str:
    """Check that the loss is of the bundle's files and obeys the laws; learn what it declares."""
    suite, about = load_table(case.suite), case.given.about
    if suite.name != about.suite:
        raise apart.Refused(f"it is for {about.suite}, not for {suite.name}")
    gather_records(case)
    with apart.refusing():
        terms = [term for term in term_names(about.loss) if not is_registered(term)]
        reproduction.write_loss_files(case.given.sources, case.folder / "loss")
        files = {own[0].as_posix() if own else "" for own in map(file_and_class, terms)}
        if files - {*case.given.sources}:
            raise apart.Refused(f"{about.loss} names a file that is not in the bundle")
        loss = asdict(case.placed("loss"))
        answer = apart.ask(case.folder / "declared", apart.SECONDS, loss=loss)
        declared = dict(zip(terms, answer.terms, strict=True))
        apart.write_stand_ins(declared, case.folder / STAND_IN)
        known = case.placed(STAND_IN)
        known.make()
        schema.check_settings({"params": known.complete.params})
    case.code = answer.code
    declined = ", ".join(law for law, word in answer.laws.items() if word == "declined")
    return f"{len(answer.laws)} laws" + f", declined: {declined}" * bool(declined)


def gather_records(case: Verification) -> None:
    """Take this side's records, before minutes are spent on the loss; raise without a baseline."""
    table = load_table(case.suite, quick=case.quick)
    sources = [one for one in case.places if reading.dataset_folders(one)]
    names = {tuple(map(store.file_name, (c.domain, c.dataset))) for c in table.columns.values()}
    merge.merge_records(sources, case.folder / OURS, names)
    base = baseline_row(resolve(table, None, case.folder / OURS))
    if not any(cell.records for cell in base.cells.values()):
        line = f"bench sweep {case.suite} --only 'row={base.name}' --results {case.places[0]}"
        where = " and ".join(map(str, case.places))
        raise UserError(f"no records of {base.name} in {where}: make them by {line}")


def check_cells(case: Verification) -> str:
    """Make every cell that the suite asks for, stage by stage; by these the loss stands."""
    loss, ours = case.placed(STAND_IN), case.folder / OURS
    while True:
        with apart.refusing():
            plan = make_plan(case.suite, results=ours, losses=[loss], quick=case.quick)
            tasks = [task for task in plan.tasks() if task.state == "missing"]
        if not tasks:
            break
        for _, some in groupby(tasks, key=lambda task: task.experiment.key):
            make_records(case, list(some))
    case.standing = " ".join(said(compared(resolve(plan.table, None, ours))))
    made = len(case.made)
    return f"{made} cell{plural(made)}, all that {plan.table.name} asks of the loss"


def make_records(case: Verification, tasks: Sequence[Task]) -> None:
    """Run the seeds of one experiment in a child process, and keep all that its trainings score.

    What was made before, by an earlier verification too, is not made again.
    """
    from contrastbench.benchmarks.running.opening import prepare_cells

    work, seeds = tasks[0].experiment, [task.seed for task in tasks]
    loss = work.loss.name.replace(str(case.folder / STAND_IN), str(case.folder / "loss"))
    code = work.loss.code and case.code  # none of a registered loss that it becomes
    opened = prepare_cells(work, seeds[0], Options(data_root=case.data_root, device="cpu"), None)
    cells = [{**cell.identity, "loss_code": code, "seed": s} for s in seeds for cell, _ in opened]
    names = {store.record_path(Path(), one).as_posix(): one["seed"] for one in cells}
    results, folder = case.keep or case.folder / "made", case.folder / "cells" / str(len(case.made))
    new = {seed for name, seed in names.items() if not reading.find(results / name)}
    if new:
        asked = asdict(replace(work, loss=replace(work.loss, name=loss)))
        given = {"experiment": asked, "seeds": sorted(new), "data_root": str(case.data_root)}
        apart.ask(folder, apart.SECONDS * len(new), **given)
    for name, seed in names.items():
        record = reading.find_record(results / name)
        if not record:
            record = returned_record(folder / "results" / name, f"{tasks[0].label} seed {seed}")
            store.publish_record(record, results / name)
        case.made[name] = record
        known = record | {"loss_code": work.loss.code}
        known["key"] = store.key(known)
        store.publish_record(known, store.record_path(case.folder / OURS, known))
    tell(f"{len(case.made)} cells are made, the last on {work.domain} {work.dataset}")


def returned_record(path: Path, label: str) -> store.Record:
    """Return the record of a cell that a child has published; another's is refused."""
    with apart.refusing(f"{label}: the loss's process made no valid record of it"):
        return store.checked_record(store.file_bytes(path), path, "what the loss's process made")


def compare_claim(case: Verification) -> str:
    """Compare the bundle's records with those made here."""
    ours = {name: record for name, record in case.made.items() if record["loss_code"]}
    factor = sqrt(2) * NormalDist().inv_cdf(1 - LEVEL / 2 / max(1, len(ours)))
    outcomes, places = list[Outcome](), [case.folder / OURS]
    for name, record in ours.items():
        with suppress(UserError):  # a claim that cannot be read is none
            claimed = store.checked_record(case.given.claims.get(name, b""), Path(name), name)
            outcomes.append(Outcome(claimed, record, spread_of(record, places, factor)))
    case.differing = [claim for claim in outcomes if not (claim.equal or claim.within)]
    wrong = {"claimed otherwise": len(case.differing)}
    if not (case.quick and outcomes):  # the quick part may choose among other cells
        wrong["not claimed"] = len(ours) - len(outcomes)
    if not case.quick:
        wrong["beyond what the suite asks for"] = len(case.given.claims.keys() - ours)
    if any(wrong.values()):
        raise apart.Refused(", ".join(f"{n} {what}" for what, n in wrong.items() if n))
    return f"{sum(one.equal for one in outcomes)} of {len(outcomes)} equal to the bit"
