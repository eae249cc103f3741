"""One cell: open its data, train a loss, score the model, publish the record."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from joblib import cpu_count
from torch import nn

from contrastbench.benchmarks.records import exports, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.running import opening, publishing, ranks, scalars
from contrastbench.benchmarks.running.devices import PeakMemory
from contrastbench.benchmarks.running.history import Diverged, History
from contrastbench.benchmarks.running.learned import learned_details
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.running.signals import termination_kept
from contrastbench.benchmarks.running.training import AnyDomain, train
from contrastbench.distributed import ProcessLost
from contrastbench.domains.base import Evaluation, Exports, Validates
from contrastbench.domains.reading import cause
from contrastbench.domains.report import DataReport
from contrastbench.errors import UnusableSamples, UserError, is_out_of_memory, is_termination, tell

# The generator that is seeded, the threads of torch and what can be imported are the process's.
one_training = threading.RLock()


@dataclass(frozen=True)
class Trained:
    """The model that a training has made, or the untrained one."""

    opened: opening.Opened
    model: nn.Module
    history: History
    peak: PeakMemory


def run_seeds(
    experiment: Experiment, seeds: Iterable[int], options: Options
) -> Iterator[tuple[Record, Path]]:
    """Run one seed after another, as `run_cell` does, and yield the records of all scored sets."""
    hashes: dict[str, str] = {}
    opening.told_reports.clear()
    for seed in seeds:
        made = options
        for work in experiment.scored:
            try:
                record, path = run_cell(work, seed, made, data_hash=hashes.get(work.dataset))
            except UnusableSamples as error:
                raise UserError(f"seed {seed}: {error}") from None
            hashes[work.dataset] = record["data_hash"]
            yield record, path
            if record["status"] not in store.FINAL_STATUSES:
                break  # it is that of all
            made = replace(options, export=None, log=None)  # the first has it


def run_cell(
    experiment: Experiment,
    seed: int,
    options: Options,
    cores: int | None = None,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    data_hash: str | None = None,
) -> tuple[Record, Path]:
    """Return the record of one seed and its path; train only if the cell is not finished.

    Ranks do it together; only the first publishes the record. Threads of a process do it one after
    another.

    Args:
        cores: CPUs of the machine, where this process is one of several and sees fewer.
        turn: what a training that takes more than its share of the cores waits for and holds.
        data_hash: of the data that the other seeds have; None: there are none.

    A cell that cannot be run is a `UserError` before anything is trained or recorded.
    """
    with one_training:
        provenance()  # of the code that was loaded: its checkout may move on meanwhile
        opened = opening.open_cells(experiment, seed, options, cores)
        opening.check_same_data(opened.asked, data_hash)
        if finished := opening.finished_result(opened):
            return finished
        opened = opening.with_loss(opened)
        with turn() if crowds(opened.domain.device) else nullcontext():
            outcomes = attempt(opened)
        return publish(opened, outcomes)


@ranks.by_first
def crowds(device: torch.device) -> bool:
    """Return whether the CPU has more threads to run than this process has cores among others."""
    return device.type == "cpu" and torch.get_num_threads() > cpu_count()


def attempt(opened: opening.Opened) -> list[Fields]:
    """Train and score; a failure is an outcome of each cell, and never stops another training.

    A rank that fails alone cannot wait for the others: it ends, and they do.
    """
    try:
        with termination_kept():
            return score_cells(train_cells(opened))
    except Diverged as error:
        failure = {"status": "diverged", "details": {"error": str(error), **error.details}}
    except BaseException as error:  # a user's loss may raise anything, and call sys.exit
        if is_termination(error) or isinstance(error, ProcessLost) or not ranks.is_first():
            raise
        error = shown_error(error)
        text = traceback.format_exc().encode(errors="backslashreplace").decode()
        about = {"error": reason(error), "traceback": text}
        failure = {"status": "failed", "details": about}
        if is_out_of_memory(error):
            failure = {"status": "oom", "details": {"error": str(error) or repr(error)}}
    return [failure] * len(opened.cells)


def shown_error(error: BaseException) -> BaseException:
    """Return an error, or in its place one that can be written where its own class cannot."""
    try:
        f"{error} {error!r}".encode()
    except Exception:
        return RuntimeError(f"{type(error).__name__}, which cannot be written")
    return error


def reason(error: BaseException) -> str:
    """Return why a cell failed, in one line where the remedy is known."""
    operation, lacks, _ = str(error).partition(" does not have a deterministic implementation")
    if lacks:
        return f"{operation}{lacks} on this device: give --no-deterministic"
    return str(error) if isinstance(error, UserError) else repr(error)


def train_cells(opened: opening.Opened) -> Trained:
    """Train the loss by the first cell."""
    logging = scalars.scalars(opened.options, opened.cells[0])
    with logging if ranks.is_first() else nullcontext() as log:
        start, peak = time.perf_counter(), PeakMemory(opened.domain.device)
        given = opened.domain, opened.loss, opened.checkpoint
        model, history = train(*given, log, opened.compiled)
        history.seconds += time.perf_counter() - start
    return Trained(opened, model, history, peak)


def score_cells(trained: Trained) -> list[Fields]:
    """Score the model on each set, and export it if asked to."""
    opened, outcomes = trained.opened, list[Fields]()
    for place in range(len(opened.cells)):
        outcome = {"status": "ok", **score(trained, place)}
        outcomes.append({**outcome, "peak_memory_mib": trained.peak.mib})
    store.canonical(outcomes)  # what no record can hold, such as NaN, is a failure of this cell
    if opened.options.export and ranks.is_first():
        export(opened, trained.model, opened.options.export)
    return outcomes


def score(trained: Trained, place: int) -> Fields:
    """Score the model on the set of a cell, and return the measurements."""
    opened, history = trained.opened, trained.history
    if place:  # the time of the training counts once
        history = replace(history, dev_curve=[], metrics={}, seconds=0.0)
    chooses = opened.loss is not None and opened.domain.recipe.validate_every is not None
    start = time.perf_counter()
    evaluation = evaluated(opened.domains[place], trained.model, bool(place and chooses))
    spent = time.perf_counter() - start
    seconds = {"seconds_training": history.seconds, "seconds_evaluation": spent}
    return {
        "metrics": {**evaluation.metrics, **history.metrics},
        "main": evaluation.main,
        "details": {
            **history.details,
            **publishing.as_details(evaluation),
            **facts(opened, place, opened.reports[place]),
            **seconds,
            **publishing.in_lines(learned_details(opened.loss)),
        },
        "seconds": sum(seconds.values()),
    }


@ranks.by_first
def evaluated(domain: AnyDomain, model: nn.Module, validates: bool) -> Evaluation:
    """Score the model, by its validation part too where it was trained on another set."""
    evaluation = domain.evaluate(model)
    if validates:
        assert isinstance(domain, Validates), "it is of the training's kind"
        evaluation = replace(evaluation, validation=domain.validate(model))
    return evaluation


def facts(opened: opening.Opened, place: int, report: DataReport) -> Fields:
    """Return what a record's details say of the data that were read, before any training."""
    cell, domain, read = opened.cells[place], opened.domains[place], report.as_json()
    digest = opened.scored[place]
    return publishing.in_lines(
        {
            **({"scored_data": digest} if digest != cell.data_hash else {}),
            **({"trained_as": opened.cells[0].key} if place else {}),
            **domain.notes(trained=cell.experiment.trained and place == 0),  # and not scored alone
            **({"report": read} if read else {}),
        }
    )


def foretell(experiment: Experiment, seed: int, options: Options) -> list[Fields]:
    """Return what the record of each cell of a training says, whatever the training finds."""
    opened = opening.open_cells(experiment, seed, options)
    return [
        {
            **cell.identity,
            **publishing.made_by(opened, place),
            "details": facts(opened, place, domain.report(cell.experiment.trained and place == 0)),
        }
        for place, (cell, domain) in enumerate(zip(opened.cells, opened.domains, strict=True))
    ]


def export(opened: opening.Opened, model: nn.Module, folder: Path) -> None:
    """Write the model and its cell; where that fails, the record is kept."""
    assert isinstance(opened.domain, Exports), "check_export has refused it"
    try:
        opened.domain.export(model, folder)
        identity = store.canonical(opened.cells[0].identity)
        (folder / exports.CELL_FILE).write_text(identity + "\n", "utf-8")
    except Exception as error:
        tell(f"--export {folder} failed ({cause(error)}): the record is kept, the model is not")


def publish(opened: opening.Opened, made: Sequence[Fields]) -> tuple[Record, Path]:
    """Publish the records, and return the one that was asked for, with its path."""
    if not ranks.is_first():
        record = cast(Record, {**opened.asked.identity, **made[opened.place]})
        return record, opened.asked.path(opened.options.results)
    each = enumerate(made)
    published = [publishing.publish_result(opened, place, outcome) for place, outcome in each]
    record, path = published[opened.place]
    if record["status"] in store.FINAL_STATUSES:
        opened.checkpoint.unlink(missing_ok=True)
    return record, path
