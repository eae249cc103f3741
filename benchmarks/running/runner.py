"""One cell: train a loss in a domain, score it, publish the record."""

import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import torch
from joblib import cpu_count
from torch import nn

from contrastbench.benchmarks.records import exports, store
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.running import ranks, scalars
from contrastbench.benchmarks.running.compiling import compiled_parts
from contrastbench.benchmarks.running.devices import PeakMemory
from contrastbench.benchmarks.running.interruption import termination_kept
from contrastbench.benchmarks.running.learned import learned_details
from contrastbench.benchmarks.running.opening import (
    Opened,
    check_same_data,
    finished_result,
    prepare_cells,
    prepare_loss,
)
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.running.publishing import as_details, in_lines, publish_result
from contrastbench.benchmarks.running.training import AnyDomain, Diverged, History, Log, train
from contrastbench.distributed import ProcessLost
from contrastbench.domains.base import Exports, Validates
from contrastbench.domains.reading import cause
from contrastbench.domains.report import DataReport
from contrastbench.errors import UnusableSamples, UserError, is_out_of_memory, is_termination, tell
from contrastbench.losses.base import Loss

# The generator that is seeded, the threads of torch and what can be imported are the process's.
one_training = threading.RLock()
told_reports: set[tuple[str, str]] = set()  # of data sets, by name and hash


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
        experiment: what is trained and scored.
        seed: of everything that is drawn.
        options: where, and on what.
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
        if finished := ranks.from_first(lambda: finished_result(cell, domain, options)):
            return finished
        training = Training(cells, prepare_loss(cells, options), options)
        training.tell_reports()
        # more threads than this process has cores among others
        crowds = domain.device.type == "cpu" and ranks.from_first(
            lambda: torch.get_num_threads() > cpu_count()
        )
        with turn() if crowds else nullcontext():
            outcomes = attempt_training(training)
        if not ranks.is_first():
            return cast(Record, {**cell.identity, **outcomes[place]}), cell.path(options.results)
        with_what = options, domain.device, training.compiled
        both = zip(cells, outcomes, strict=True)
        record, path = [publish_result(one, made, *with_what) for (one, _), made in both][place]
        if record["status"] in store.FINAL_STATUSES:
            training.checkpoint.unlink(missing_ok=True)
        return record, path


def attempt_training(training: "Training") -> list[Fields]:
    """Return the measurements of each cell of a training, or the failure of them all.

    One training's failure never stops another. A rank that fails alone cannot wait for the others:
    it ends, and they do.
    """
    try:
        with termination_kept():
            return [{"status": "ok", **measured} for measured in training.measure()]
    except Diverged as error:
        failure = {"status": "diverged", "details": {"error": str(error), **error.details}}
    except ProcessLost:
        raise
    except BaseException as error:  # a user's loss may raise anything, and call sys.exit
        if is_termination(error) or not ranks.is_first():
            raise
        about = {"error": reason(error), "traceback": traceback.format_exc()}
        failure = {"status": "failed", "details": about}
        if is_out_of_memory(error):
            failure = {"status": "oom", "details": {"error": str(error) or repr(error)}}
    return [failure] * len(training.cells)


def reason(error: BaseException) -> str:
    """Return why a cell failed, in one line where the remedy is known."""
    operation, lacks, _ = str(error).partition(" does not have a deterministic implementation")
    if lacks:
        return f"{operation}{lacks} on this device: give --no-deterministic"
    return str(error) if isinstance(error, UserError) else repr(error)


@dataclass(frozen=True)
class Training:
    """A training that is prepared, with its cells: the first trains, and all score its model."""

    cells: Sequence[Opened]
    loss: Loss | None
    options: Options

    @property
    def cell(self) -> Cell:
        """Return the cell that trains."""
        return self.cells[0][0]

    @property
    def domain(self) -> AnyDomain:
        """Return the domain that trains."""
        return self.cells[0][1]

    @property
    def checkpoint(self) -> Path:
        """Return the path of an interrupted training's checkpoint."""
        name = f"{self.cell.key[:16]}-seed{self.cell.seed}.safetensors"
        return self.options.results / "checkpoints" / name

    def trains(self, domain: AnyDomain) -> bool:
        """Return whether the domain's samples are trained on, and not scored alone."""
        return self.loss is not None and domain is self.domain

    @cached_property
    def reports(self) -> list[DataReport]:
        """Return what the data of each cell hold."""
        return [domain.report(self.trains(domain)) for _, domain in self.cells]

    def tell_reports(self) -> None:
        """Say what was read, once for all seeds of a run, or all cells of a worker."""
        for place, (cell, _) in enumerate(self.cells if ranks.is_first() else ()):
            dataset = cell.experiment.dataset
            if (dataset, cell.data_hash) not in told_reports:
                told_reports.add((dataset, cell.data_hash))
                for line in self.reports[place].lines(dataset):
                    tell(line)

    @cached_property
    def compiled(self) -> list[str]:
        """Return what of the training is compiled."""
        return compiled_parts(self.domain, self.loss) if self.options.compile else []

    def scalars(self) -> AbstractContextManager[Log | None]:
        """Return what takes the training's scalars, if anything does."""
        board, results = self.options.tensorboard, self.options.results
        if board is None or not ranks.is_first():
            return nullcontext()
        name = self.cell.path(results).relative_to(results / "runs").with_suffix("")
        return scalars.scalars(board / name)

    def scored_data(self, cell: Cell, domain: AnyDomain) -> dict[str, str]:
        """Return the hash of the data that score, where others train, and the training's key."""
        digest = domain.data_hash(trained=False)
        scored = {} if digest == cell.data_hash else {"scored_data": digest}
        return scored if cell is self.cell else {**scored, "trained_as": self.cell.key}

    def measure(self) -> list[Fields]:
        """Train, score on each set and export if asked to; return the measurements of each set."""
        start, peak = time.perf_counter(), PeakMemory(self.domain.device)
        with self.scalars() as log:
            given = self.domain, self.loss, self.checkpoint
            model, history = train(*given, log, self.compiled)
        history.seconds += time.perf_counter() - start
        beside = replace(history, dev_curve=[], metrics={}, seconds=0.0)  # its time counts once
        outcomes: list[Fields] = [
            {**self.score(place, model, beside if place else history), "peak_memory_mib": peak.mib}
            for place in range(len(self.cells))
        ]
        store.canonical(outcomes)  # what no record can hold, such as NaN, is a failure of this cell
        if self.options.export and ranks.is_first():
            self.export(model, self.options.export)
        return outcomes

    def score(self, place: int, model: nn.Module, history: History) -> Fields:
        """Score the model on the set of a cell, and return the measurements."""
        (cell, domain), report = self.cells[place], self.reports[place].as_json()
        start = time.perf_counter()
        evaluation = ranks.from_first(lambda: domain.evaluate(model))
        chosen = self.loss is not None and self.domain.recipe.validate_every is not None
        if chosen and place:
            assert isinstance(domain, Validates), "it is of the training's kind"
            validation = ranks.from_first(lambda: domain.validate(model))
            evaluation = replace(evaluation, validation=validation)
        seconds = {
            "seconds_training": history.seconds,
            "seconds_evaluation": time.perf_counter() - start,
        }
        read = {
            **domain.notes(trained=self.trains(domain)),
            **({"report": report} if report else {}),
        }
        return {
            "metrics": {**evaluation.metrics, **history.metrics},
            "main": evaluation.main,
            "details": {
                **history.details,
                **as_details(evaluation),
                **in_lines({**self.scored_data(cell, domain), **read}),
                **seconds,
                **in_lines(learned_details(self.loss)),
            },
            "seconds": sum(seconds.values()),
        }

    def export(self, model: nn.Module, folder: Path) -> None:
        """Write the model and its cell; where that fails, the record is kept."""
        assert isinstance(self.domain, Exports), "check_export has refused it"
        try:
            self.domain.export(model, folder)
            exports.note_cell(folder, self.cell.identity)
        except Exception as error:
            tell(f"--export {folder} failed ({cause(error)}): the record is kept, the model is not")
