"""One cell: train a loss in a domain, score it, publish the record."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from joblib import cpu_count
from torch import nn

from contrastbench.benchmarks.records import exports, store
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.running import ranks, scalars
from contrastbench.benchmarks.running.devices import PeakMemory
from contrastbench.benchmarks.running.history import Diverged, History
from contrastbench.benchmarks.running.interruption import termination_kept
from contrastbench.benchmarks.running.learned import learned_details
from contrastbench.benchmarks.running.opening import (
    Opened,
    Prepared,
    check_same_data,
    finished_result,
    prepare_cells,
    prepare_training,
    told_reports,
)
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.running.publishing import (
    as_details,
    in_lines,
    made_by,
    publish_result,
)
from contrastbench.benchmarks.running.training import AnyDomain, Log, train
from contrastbench.distributed import ProcessLost
from contrastbench.domains.base import Exports, Validates
from contrastbench.domains.reading import cause
from contrastbench.domains.report import DataReport
from contrastbench.errors import UnusableSamples, UserError, is_out_of_memory, is_termination, tell

# The generator that is seeded, the threads of torch and what can be imported are the process's.
one_training = threading.RLock()


def run_seeds(
    experiment: Experiment, seeds: Iterable[int], options: Options
) -> Iterator[tuple[Record, Path]]:
    """Run one seed after another, as `run_cell` does, and yield the records of all scored sets.

    Raises:
        UserError: data of a user's own were edited between two seeds, or a seed draws samples that
            cannot be scored.
    """
    hashes: dict[str, str] = {}
    told_reports.clear()
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
            made = replace(options, export=None, tensorboard=None)  # the first has it


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

    Raises:
        UserError: it cannot be run; nothing was trained and nothing recorded.
    """
    with one_training:
        provenance()  # of the code that was loaded: its checkout may move on meanwhile
        cells = prepare_cells(experiment, seed, options, cores)
        place = experiment.scored.index(experiment)
        cell, domain = cells[place]
        check_same_data(cell, data_hash)
        if finished := ranks.from_first(partial(finished_result, cell, domain, options)):
            return finished
        training = prepare_training(cells, options)
        # more threads than this process has cores among others
        crowds = domain.device.type == "cpu" and ranks.from_first(
            lambda: torch.get_num_threads() > cpu_count()
        )
        with turn() if crowds else nullcontext():
            outcomes = attempt_training(training, options)
        if not ranks.is_first():
            return cast(Record, {**cell.identity, **outcomes[place]}), cell.path(options.results)
        with_what = options, domain.device, training.compiled
        both = zip(cells, outcomes, strict=True)
        record, path = [publish_result(cell, made, *with_what) for (cell, _), made in both][place]
        if record["status"] in store.FINAL_STATUSES:
            training.checkpoint.unlink(missing_ok=True)
        return record, path


def attempt_training(training: Prepared, options: Options) -> list[Fields]:
    """Return the measurements of each cell of a training, or the failure of them all.

    One training's failure never stops another. A rank that fails alone cannot wait for the others:
    it ends, and they do.
    """
    try:
        with termination_kept():
            return [{"status": "ok", **measured} for measured in measure(training, options)]
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
    return [failure] * len(training.cells)


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


def measure(training: Prepared, options: Options) -> list[Fields]:
    """Train, score on each set and export if asked to; return the measurements of each set."""
    cell, domain = training.cells[0]
    start, peak = time.perf_counter(), PeakMemory(domain.device)
    with scalars_of(cell, options) as log:
        given = domain, training.loss, training.checkpoint
        model, history = train(*given, log, training.compiled)
    history.seconds += time.perf_counter() - start
    beside = replace(history, dev_curve=[], metrics={}, seconds=0.0)  # its time counts once
    outcomes: list[Fields] = [
        {**score(training, place, model, beside if place else history), "peak_memory_mib": peak.mib}
        for place in range(len(training.cells))
    ]
    store.canonical(outcomes)  # what no record can hold, such as NaN, is a failure of this cell
    if options.export and ranks.is_first():
        export(cell, domain, model, options.export)
    return outcomes


def scalars_of(cell: Cell, options: Options) -> AbstractContextManager[Log | None]:
    """Return what takes a training's scalars, if anything does."""
    if options.tensorboard is None or not ranks.is_first():
        return nullcontext()
    name = cell.path(options.results).relative_to(options.results / "runs").with_suffix("")
    return scalars.scalars(options.tensorboard / name)


def score(training: Prepared, place: int, model: nn.Module, history: History) -> Fields:
    """Score the model on the set of a cell, and return the measurements."""
    domain, trainer = (training.cells[one].domain for one in (place, 0))
    start = time.perf_counter()
    evaluation = ranks.from_first(partial(domain.evaluate, model))
    if place and training.loss is not None and trainer.recipe.validate_every is not None:
        assert isinstance(domain, Validates), "it is of the training's kind"
        validation = ranks.from_first(partial(domain.validate, model))
        evaluation = replace(evaluation, validation=validation)
    seconds = {
        "seconds_training": history.seconds,
        "seconds_evaluation": time.perf_counter() - start,
    }
    return {
        "metrics": {**evaluation.metrics, **history.metrics},
        "main": evaluation.main,
        "details": {
            **history.details,
            **as_details(evaluation),
            **facts(training.cells, place, training.loss is not None, training.reports[place]),
            **seconds,
            **in_lines(learned_details(training.loss)),
        },
        "seconds": sum(seconds.values()),
    }


def facts(cells: Sequence[Opened], place: int, trained: bool, report: DataReport) -> Fields:
    """Return what a record's details say of the data that were read, before any training."""
    (cell, domain), read = cells[place], report.as_json()
    digest = domain.data_hash(trained=False)
    return in_lines(
        {
            **({"scored_data": digest} if digest != cell.data_hash else {}),
            **({"trained_as": cells[0].cell.key} if place else {}),
            **domain.notes(trained=trained and place == 0),  # and not scored alone
            **({"report": read} if read else {}),
        }
    )


def foretell(experiment: Experiment, seed: int, options: Options) -> list[Fields]:
    """Return what the record of each cell of a training says, whatever the training finds."""
    cells, trained = prepare_cells(experiment, seed, options, None), experiment.trained
    return [
        {
            **cell.identity,
            **made_by(cell, options, domain.device),
            "details": facts(cells, place, trained, domain.report(trained and place == 0)),
        }
        for place, (cell, domain) in enumerate(cells)
    ]


def export(cell: Cell, domain: AnyDomain, model: nn.Module, folder: Path) -> None:
    """Write the model and its cell; where that fails, the record is kept."""
    assert isinstance(domain, Exports), "check_export has refused it"
    try:
        domain.export(model, folder)
        (folder / exports.CELL_FILE).write_text(store.canonical(cell.identity) + "\n", "utf-8")
    except Exception as error:
        tell(f"--export {folder} failed ({cause(error)}): the record is kept, the model is not")
