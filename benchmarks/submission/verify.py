"""Verify a bundle: checksums, keys, the loss, its budget, and a sample of cells run again.

Everything in a bundle may be forged but the numbers that a cell has when it is run again. Limits
of differences come from records of this side alone.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar

from contrastbench.benchmarks.comparison import formats
from contrastbench.benchmarks.records import files, merge, reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import reproduction
from contrastbench.benchmarks.running.reproduction import Outcome, Spread
from contrastbench.benchmarks.submission import bundle, cells
from contrastbench.benchmarks.submission.bundle import Bundle, Refused
from contrastbench.benchmarks.sweeps.plan import Plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.errors import UserError
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import LossSpec

T = TypeVar("T")
LEVEL = 0.025  # an honest bundle's risk by each of two rules, where machines differ as seeds do
LIMIT = NormalDist().inv_cdf(0.975)  # standard deviations that the limit of one cell is
MAX_SHIFT = NormalDist().inv_cdf(1 - LEVEL / 2)  # standard errors that all cells may move together


@dataclass(frozen=True)
class Asked:
    """What a verification uses of this side."""

    suite: str  # a table, or a sweep file
    places: Sequence[Path]  # folders of trusted records
    trust: bool  # whether the loss's code may run
    count: int  # cells that run again
    draw: str  # joins the draw of these cells
    data_root: Path | None = None
    device: str | None = None


@dataclass
class Verification:
    """A bundle under verification, and what is known of it so far."""

    given: Bundle
    asked: Asked
    folder: Path  # an empty one, for its files
    records: list[Record] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)  # by check, with what it found
    problem: tuple[str, str] | None = None  # the check that failed, and why
    outcomes: list[Outcome] = field(default_factory=list)
    standing: str = ""
    plan: Plan | None = None

    @property
    def results(self) -> Path:
        """Return the folder of the bundle's records."""
        return self.folder / "results"

    @property
    def loss(self) -> LossSpec:
        """Return the bundle's loss in its place on this side."""
        name = reproduction.placed_loss(self.given.about.loss, self.folder / "loss")
        return LossSpec(name, self.given.about.params)


def verify_bundle(given: Bundle, asked: Asked, folder: Path) -> Verification:
    """Return what the checks of a bundle found; the first that fails is the last.

    Raises:
        UserError: the loss's code may not run, or this side lacks something, such as data.
    """
    case = Verification(given, asked, folder)
    for name, check in BUNDLE_CHECKS.items():
        try:
            case.passed[name] = check(case)
        except Refused as error:
            case.problem = name, str(error)
            break
    else:
        case.standing = suite_verdict(case)
    return case


def check_records(case: Verification) -> str:
    """Check the records' checksums, keys and names, and that they have the loss's files.

    Trials may be of a registered loss that it becomes, which has no files.
    """
    texts = case.given.under(bundle.LOSS_FOLDER).items()
    sources = {name: as_refusal(data.decode) for name, data in texts}
    own = {"name": case.given.about.loss, "files": sources}
    for name, data in case.given.files.items():
        if not name.startswith(bundle.RUNS_FOLDER):
            continue
        path = case.results / name
        record = as_refusal(store.checked_record, data, Path(name), name)
        if record["status"] not in store.FINAL_STATUSES:
            raise Refused(f"{name} is {record['status']} and no result")
        theirs = record.get("own_loss", {})
        if not of_registered(record) and {key: theirs.get(key) for key in own} != own:
            raise Refused(f"{name} was made with another loss than the files of the bundle")
        path.parent.mkdir(parents=True, exist_ok=True)
        files.publish_file(path, data)
        case.records.append(record)
    if not case.records:
        raise Refused("the bundle has no records")
    return f"{len(case.records)} records, each with its own checksum and key"


def of_registered(record: Record) -> bool:
    """Return whether a record is of a loss that this side knows, and no file took its place."""
    return (
        not record["loss_code"]
        and "own_loss" not in record
        and as_refusal(is_registered, record["loss"])
    )


def check_bundled_loss(case: Verification) -> str:
    """Check that the loss can be made, and that all records are of its code."""
    files_ = case.given.under(bundle.LOSS_FOLDER)
    named = [one.as_posix() for one in as_refusal(bundle.own_files, case.given.about.loss)]
    if not named or set(named) - set(files_):
        raise Refused(f"{case.given.about.loss} names a file that is not in the bundle")
    if not case.asked.trust:
        names = ", ".join(files_)
        raise UserError(f"the bundle runs Python of its own, {names}: read it, then give --trust")
    for name, data in files_.items():
        path = case.folder / "loss" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    as_refusal(case.loss.check)
    code = as_refusal(lambda: case.loss.code)
    if not code:
        raise Refused(f"{case.given.about.loss} is no loss of the bundle's files")
    own = [one for one in case.records if not of_registered(one)]
    wrong = [one for one in own if one["loss_code"] != code]
    if wrong:
        raise Refused(
            f"{len(wrong)} of {len(case.records)} records are of other code than the loss file"
        )
    for one in own:
        reproduction.check_packages(one["own_loss"].get("packages", {}))
    return f"it imports {', '.join(as_refusal(imported_modules, files_))}"


def imported_modules(sources: dict[str, bytes]) -> list[str]:
    """Return the modules that files import, for a reader who decides whether to trust them."""
    found = set[str]()
    for data in sources.values():
        for node in ast.walk(ast.parse(data)):
            if isinstance(node, ast.ImportFrom):
                found.add(node.module or ".")
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    return sorted(found)


def check_laws(case: Verification) -> str:
    """Check the laws of `bench check-loss`."""
    from contrastbench.losses import laws

    loss = case.loss
    found = as_refusal(lambda: laws.check_loss(loss.name, **loss.params))
    wrong = [one for one in found if not one.passed]
    if wrong:
        raise Refused(f"{wrong[0].name}: {wrong[0].detail}")
    declined = [one.name for one in found if one.word == "declined"]
    return f"{len(found)} laws" + f", declined: {', '.join(declined)}" * bool(declined)


def check_budget(case: Verification) -> str:
    """Check that the records are those that the suite asks for, no more and no less."""
    suite = load_table(case.asked.suite)
    if suite.name != case.given.about.suite:
        raise Refused(f"it is for {case.given.about.suite}, not for {suite.name}")
    plan = as_refusal(cells.suite_plan, case.asked.suite, case.loss, case.results)
    lacking, of = cells.missing_count(plan)
    if lacking:
        raise Refused(f"{lacking} of {of} cells of {suite.name} have no record")
    wanted = {cells.record_name(record) for _, record in cells.finished_records(plan)}
    further = sorted({cells.record_name(record) for record in case.records} - wanted)
    if further:
        raise Refused(f"{len(further)} records are beyond the budget, such as {further[0]}")
    case.plan = plan
    return f"{of} cells, as many as {suite.name} asks of each loss"


def check_data(case: Verification) -> str:
    """Check that each data set has the content that trusted records name."""
    known: dict[tuple[str, str], set[str]] = {}
    for record in case.records:
        name = record["domain"], record["dataset"]
        if name not in known:
            known[name] = {one["data_hash"] for one in trusted(record, case.asked.places)}
        if known[name] and record["data_hash"] not in known[name]:
            raise Refused(f"{name[1]} is not the data of other losses' records")
    return f"{sum(map(bool, known.values()))} of {len(known)} data sets are known"


def trusted(record: Record, places: Sequence[Path]) -> Iterator[Record]:
    """Yield the trusted records of a record's dataset."""
    for place in places:
        yield from reproduction.of_dataset(record, place)


def check_again(case: Verification) -> str:
    """Run a sample of the cells again, and compare their numbers."""
    drawn = sampled_cells(case)
    factor = widened(len(drawn))
    for i, (work, record) in enumerate(drawn):
        own = case.folder / "again" / str(i)
        spread = reproduction.spread_of(record, case.asked.places)
        wider = {name: factor * limit for name, limit in spread.limits.items()}
        about = case.asked.data_root, case.asked.device
        again = reproduction.run_again(record, work, own, *about)
        case.outcomes.append(Outcome(record, again, Spread(wider, spread.cells)))
    if text := rerun_difference(case.outcomes, factor):
        raise Refused(text)
    return f"{len(drawn)} cells, drawn by the bundle's sha256"


def widened(count: int) -> float:
    """Return the factor of a cell's limit, such that so many honest cells are rarely beyond it.

    >>> f"{widened(8):.2f}"
    '1.51'
    """
    return NormalDist().inv_cdf(1 - LEVEL / 2 / count) / LIMIT


def rerun_difference(outcomes: Sequence[Outcome], factor: float) -> str:
    """Say how cells that ran again differ by more than machines may; nothing if they do not.

    Args:
        outcomes: the cells, each with its widened limits.
        factor: by which the limits of one cell were widened.
    """
    beyond = sum(not (one.equal or one.within) for one in outcomes)
    if beyond:
        return f"{beyond} of {len(outcomes)} cells differ by more than machines may"
    shift = mean_shift(outcomes, factor)
    if abs(shift) > MAX_SHIFT:
        return f"all cells together moved {shift:+.1f} standard errors, {MAX_SHIFT:.1f} may be"
    return ""


def sampled_cells(case: Verification) -> list[tuple[Experiment, Record]]:
    """Draw cells by the hash of the bundle and the text of this side."""
    assert case.plan is not None, "the budget was checked"

    def place(cell: tuple[Experiment, Record]) -> str:
        words = case.given.digest, case.asked.draw, cells.record_name(cell[1])
        return hashlib.sha256("\0".join(words).encode()).hexdigest()

    return sorted(cells.finished_records(case.plan), key=place)[: case.asked.count]


def mean_shift(outcomes: Sequence[Outcome], factor: float) -> float:
    """Return by how many standard errors the recorded main numbers lie above those found again.

    Small lifts in every cell are within each limit, but not together.
    """
    found = []
    for one in outcomes:
        limit = one.spread.limits.get(one.record.get("main", ""))
        if limit and one.again["status"] == one.record["status"] == "ok":
            name = one.record["main"]
            lift = one.record["metrics"][name] - one.again["metrics"][name]
            found.append(LIMIT * factor * lift / limit)
    return sum(found) / sqrt(len(found)) if found else 0.0


def suite_verdict(case: Verification) -> str:
    """Return what the comparison of the suite says with this loss.

    Of a cell that this side has too, such as one of InfoNCE, its record counts.
    """
    sources = [one for one in case.asked.places if reading.dataset_folders(one)]
    together = case.folder / "together"
    merge.merge_records([*sources, case.results], together)
    suite = case.asked.suite
    table = load_table(suite, losses=[cells.as_listed(suite, case.loss)])
    try:
        return formats.answer_text(resolve(table, None, together))
    except UserError as error:
        return str(error)


def as_refusal(work: Callable[..., T], *about: Any) -> T:
    """Return what a function returns; a mistake in the bundle is a refusal."""
    try:
        return work(*about)
    except (UserError, UnicodeDecodeError, SyntaxError) as error:
        raise Refused(str(error)) from None


BUNDLE_CHECKS: dict[str, Callable[[Verification], str]] = {
    "records": check_records,
    "loss": check_bundled_loss,
    "laws": check_laws,
    "budget": check_budget,
    "data": check_data,
    "cells run again": check_again,
}
