"""Verify a bundle: make every cell of its loss anew, and judge by these records alone.

A bundle's own records are a claim. Whatever they say, the standing is that of the records that this
side made. A child process runs the loss; the process that judges never imports it, and knows it by
what it declares. Of a record that comes back, numbers alone are the child's own.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any, cast

from contrastbench.benchmarks.comparison.compare import baseline_row
from contrastbench.benchmarks.records import packing, reading, schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.report.comparison import compared
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission import apart
from contrastbench.benchmarks.submission.bundle import Bundle
from contrastbench.benchmarks.submission.reproduction import Outcome, spread_of
from contrastbench.benchmarks.sweeps.plan import Task, make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.errors import UserError, plural, tell
from contrastbench.losses.expression import file_and_class, names, with_terms
from contrastbench.losses.laws import LAWS
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import LossSpec
from contrastbench.losses.stand_ins import make_stand_ins

FACTS = ("data", "report", "scored_data", "trained_as")  # details that this side knows
WORDS = ("test_part", "error", "right")  # details that are texts, of fixed kinds
LEVEL = 0.05  # an honest claim's risk, where machines differ as seeds do


@dataclass
class Verification:
    """A bundle under verification, and what is known of it so far."""

    given: Bundle
    suite: str  # a table, or a sweep file
    places: Sequence[Path]  # folders of this side's records
    data_root: Path  # own data may lie here
    quick: bool = False  # the suite's quick part alone, of which nothing is verified
    keep: Path | None = None  # where the records go that are made
    jobs: int = 1  # processes at a time
    verified: bool = False  # all checks have passed; after a quick look its part agrees
    code: str = ""  # sha256 that the loss's records name
    terms: dict[str, str] = field(default_factory=dict)  # of the loss, and of its stand-in
    files: dict[Path, bytes] = field(default_factory=dict)  # this side's records, in memory
    kept: dict[str, store.Record] = field(default_factory=dict)  # made earlier, by file names
    made: dict[str, store.Record] = field(default_factory=dict)  # here, by file names
    checks: list[tuple[str, str, str]] = field(default_factory=list)  # with what each found
    differing: list[Outcome] = field(default_factory=list)  # claims
    standing: str = ""
    # threads wait for children; what this process itself knows and does, one does at a time
    turn: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)  # of all children

    @property
    def request(self) -> dict[str, Any]:
        return {"files": dict(self.given.sources), "data_root": str(self.data_root)}

    @property
    def stand_in(self) -> LossSpec:
        """The bundle's loss as this process knows it."""
        about, own = self.given.about, self.terms
        return LossSpec(with_terms(about.loss, lambda term: own.get(term, term)), about.params)

    def named(self, text: str) -> str:
        """Return a text that has the bundle's names for those of stand-ins."""
        terms = {own: term for term, own in self.terms.items()}
        return re.sub(r"\bstand_in_\d+:\w+", lambda own: terms.get(own[0], own[0]), text)

    @contextmanager
    def laid_out(self) -> Iterator[Path]:
        """Write this side's records to a new folder, which no child has seen or will see."""
        with TemporaryDirectory(prefix="contrastbench-") as folder:
            for name, data in self.files.items():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_bytes(data)
            yield Path(folder)


def run_checks(case: Verification) -> None:
    """Run the checks of a bundle; raise `UserError` where this side lacks something, as data."""
    for name, check in (("loss", check_loss), ("cells", check_cells), ("claim", compare_claim)):
        try:
            case.checks.append((name, "passed", check(case)))
        except apart.Refused as error:
            case.checks.append((name, "**failed**", case.named(str(error))))
            return
    case.verified = True


def check_loss(case: Verification) -> str:
    """Check that the loss is of the bundle's files and obeys the laws; learn what it declares."""
    suite, about = load_table(case.suite), case.given.about
    if suite.name != about.suite:
        raise apart.Refused(f"it is for {about.suite}, not for {suite.name}")
    gather_records(case)
    with apart.refusing():
        terms = [term for term in names(about.loss) if not is_registered(term)]
        files = {own[0].as_posix() if own else "" for own in map(file_and_class, terms)}
        if files - {*case.given.sources}:
            raise apart.Refused(f"{about.loss} names a file that is not in the bundle")
        loss = {"name": about.loss, "params": about.params}
        answer, _ = apart.ask(case.request | {"loss": loss}, apart.SECONDS, case.stop)
        if answer.laws.keys() - {law.name for law in LAWS}:
            raise apart.Refused("the loss's process names laws that are none")
        case.terms = make_stand_ins(dict(zip(terms, answer.terms, strict=True)))
        case.stand_in.make()
        schema.check_settings({"params": case.stand_in.complete.params})
    case.code = answer.code
    declined = ", ".join(law for law, word in answer.laws.items() if word == "declined")
    return f"{len(answer.laws)} laws" + f", declined: {declined}" * bool(declined)


def gather_records(case: Verification) -> None:
    """Take this side's records, before minutes are spent on the loss; raise without a baseline."""
    table = load_table(case.suite, quick=case.quick)
    sources = [one for one in case.places if reading.dataset_folders(one)]
    names = {tuple(map(store.file_name, (c.domain, c.dataset))) for c in table.columns.values()}
    with TemporaryDirectory(prefix="contrastbench-") as folder:
        packing.merge_records(sources, Path(folder), names)
        paths = (path for path in Path(folder).rglob("*") if path.is_file())
        case.files = {path.relative_to(folder): path.read_bytes() for path in paths}
        base = baseline_row(resolve(table, None, Path(folder)))
    if not any(cell.records for cell in base.cells.values()):
        line = f"bench sweep {case.suite} --only 'row={base.name}' --results {case.places[0]}"
        where = " and ".join(map(str, case.places))
        raise UserError(f"no records of {base.name} in {where}: make them by {line}")
    if keep := case.keep:
        case.kept = {p.relative_to(keep).as_posix(): r for p, r in reading.all_records(keep)}


def check_cells(case: Verification) -> str:
    """Make every cell that the suite asks for, stage by stage; by these the loss stands."""
    while True:
        with case.laid_out() as ours:
            with apart.refusing():
                plan = make_plan(case.suite, results=ours, losses=[case.stand_in], quick=case.quick)
                tasks = [task for task in plan.tasks() if task.state == "missing"]
            if not tasks:
                text = " ".join(said(compared(resolve(plan.table, None, ours))))
                case.standing, made = case.named(text), len(case.made)
                return f"{made} cell{plural(made)}, all that {plan.table.name} asks of the loss"
        make_all(case, tasks)


def make_all(case: Verification, tasks: Sequence[Task]) -> None:
    """Make the records of tasks, those of a training one after the other.

    Threads wait for children; what ends one of these, or this side, ends them all.
    """
    trainings = grouped((task.experiment.scored[0].key, task) for task in tasks)

    def make(some: Sequence[Task]) -> None:
        for _, one in groupby(some, key=lambda task: task.experiment.key):
            make_records(case, list(one))

    with ThreadPoolExecutor(case.jobs) as pool:
        waiting = [pool.submit(make, some) for some in trainings.values()]
        try:
            for one in as_completed(waiting):
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # first: the next would begin
            case.stop.set()
            raise


def make_records(case: Verification, tasks: Sequence[Task]) -> None:
    """Run the seeds of one experiment in a child process, and keep all that its trainings score.

    What was made before, by an earlier verification too, is not made again.
    """
    work, ours = tasks[0].experiment, dict[str, store.Fields]()
    with case.turn:
        for task in tasks:
            ours |= foretold(case, work, task.seed)
    new = {name: one["seed"] for name, one in ours.items() if name not in case.kept}
    made = list[bytes]()
    if seeds := sorted({*new.values()}):
        named = replace(work, loss=replace(work.loss, name=case.named(work.loss.name)))
        given = case.request | {"experiment": asdict(named), "seeds": seeds}
        _, made = apart.ask(given, apart.SECONDS * len(seeds), case.stop, [*new])
    with case.turn:
        for name, data in zip(new, made, strict=True):
            case.kept[name] = record = returned_record(data, Path(name), ours[name])
            if case.keep and not store.publish_record(record, case.keep / name):
                raise apart.Refused(f"{case.keep / name} was written by another process")
        for name, one in ours.items():
            record = case.made[name] = case.kept[name]
            if record.get("own_loss") != one.get("own_loss"):  # a process says which code it is of
                raise apart.Refused(f"{name} was made of other files")
            known = record | {"loss_code": work.loss.code}
            known["key"] = store.key(known)
            case.files[store.record_path(Path(), known)] = store.serialise_record(known)
        tell(f"{len(case.made)} cells are made, the last on {work.domain} {work.dataset}")


def foretold(case: Verification, work: Experiment, seed: int) -> dict[str, store.Fields]:
    """Return what this side knows of the records of a training, by their names."""
    from contrastbench.benchmarks.running.runner import foretell

    known = dict[str, store.Fields]()
    for one in foretell(work, seed, Options(data_root=case.data_root, device="cpu")):
        one = {**one, "command": case.named(one["command"])}
        if one["loss_code"]:  # not that of a registered loss that it becomes
            files = {"name": case.given.about.loss, "files": dict(case.given.sources)}
            one |= {"loss_code": case.code, "own_loss": files}
        if known:  # of several, the first was trained
            one["details"] |= {"trained_as": store.key(next(iter(known.values())))}
        known[store.record_path(Path(), one).as_posix()] = one
    return known


def returned_record(data: bytes, path: Path, known: store.Fields) -> store.Record:
    """Return a record that a child has published, with what this side knows of it."""
    with apart.refusing("the loss's process made no valid record"):
        record = store.checked_record(data, path, "what the loss's process made")
    theirs = {k: v for k, v in record["details"].items() if k not in FACTS}
    found = {k: v for k, v in theirs.items() if k in WORDS or not schema.has_text(v)}
    fields = {k: v for k, v in record.items() if k in schema.Record.__annotations__}
    return cast(store.Record, {**fields, **known, "details": {**found, **known["details"]}})


def compare_claim(case: Verification) -> str:
    ours = {name: record for name, record in sorted(case.made.items()) if record["loss_code"]}
    factor = sqrt(2) * NormalDist().inv_cdf(1 - LEVEL / 2 / max(1, len(ours)))
    outcomes = list[Outcome]()
    with case.laid_out() as folder:
        for name, record in ours.items():
            with suppress(UserError):  # a claim that cannot be read is none
                claimed = store.checked_record(case.given.claims.get(name, b""), Path(name), name)
                outcomes.append(Outcome(claimed, record, spread_of(record, [folder], factor)))
    case.differing = [claim for claim in outcomes if not (claim.equal or claim.within)]
    # the quick part may choose among other cells
    lacking = 0 if case.quick and outcomes else len(ours) - len(outcomes)
    beyond = 0 if case.quick else len(case.given.claims.keys() - ours)
    wrong = {"claimed otherwise": len(case.differing), "not claimed": lacking}
    wrong["beyond what the suite asks for"] = beyond
    if found := ", ".join(f"{n} {what}" for what, n in wrong.items() if n):
        raise apart.Refused(found)
    return f"{sum(one.equal for one in outcomes)} of {len(outcomes)} equal to the bit"
