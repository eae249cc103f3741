"""One cell: open its data, train a loss, score the model, publish the record."""

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from joblib import cpu_count
from torch import Tensor, nn

from contrastbench.benchmarks.records import experiment, files, reading, schema, store
from contrastbench.benchmarks.records.command import run_command
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.scored import packed_bits
from contrastbench.benchmarks.records.store import Fields, NotWritten, Record
from contrastbench.benchmarks.running import opening, ranks, scalars
from contrastbench.benchmarks.running.devices import PeakMemory, environment
from contrastbench.benchmarks.running.history import Diverged, History
from contrastbench.benchmarks.running.opening import Opened, OpenedSet
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.running.signals import termination_kept
from contrastbench.benchmarks.running.training import AnyDomain, train
from contrastbench.distributed import ProcessLost
from contrastbench.domains.base import Evaluation, Exports, Validates
from contrastbench.domains.reading import cause
from contrastbench.errors import (
    UnusableSamples,
    UserError,
    is_out_of_memory,
    is_termination,
    printable,
    tell,
)
from contrastbench.losses.base import Loss, Sum

# The generator that is seeded, the threads of torch and what can be imported are the process's.
one_training = threading.RLock()
MAX_VECTOR = 16  # numbers of a vector that is kept whole


@dataclass(frozen=True)
class Trained:
    """The model that a training has made, or the untrained one."""

    opened: Opened
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
        opening.check_same_data(opened.asked.cell, data_hash)
        if finished := opening.finished_result(opened):
            return finished
        opened = opening.with_loss(opened)
        with turn() if crowds(opened.first.domain.device) else nullcontext():
            outcomes = attempt(opened)
        return publish(opened, outcomes)


@ranks.by_first
def crowds(device: torch.device) -> bool:
    """Return whether the CPU has more threads to run than this process has cores among others."""
    return device.type == "cpu" and torch.get_num_threads() > cpu_count()


def attempt(opened: Opened) -> list[Fields]:
    """Train and score; a failure is an outcome of each cell, and never stops another training.

    A rank that fails alone cannot wait for the others: it ends, and they do.
    """
    try:
        with termination_kept():
            return score_sets(trained(opened))
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
    return [failure] * len(opened.sets)


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


def trained(opened: Opened) -> Trained:
    """Train the loss on the first set."""
    logging = scalars.scalars(opened.options, opened.first.cell)
    with logging if ranks.is_first() else nullcontext() as log:
        start, peak = time.perf_counter(), PeakMemory(opened.first.domain.device)
        given = opened.first.domain, opened.loss, opened.checkpoint
        model, history = train(*given, log, opened.compiled)
        history.seconds += time.perf_counter() - start
    return Trained(opened, model, history, peak)


def score_sets(made: Trained) -> list[Fields]:
    """Score the model on each set, and export it if asked to."""
    outcomes = [score(made, one) for one in made.opened.sets]
    store.canonical(outcomes)  # what no record can hold, such as NaN, is a failure of this cell
    if made.opened.options.export and ranks.is_first():
        export(made.opened.first, made.model, made.opened.options.export)
    return outcomes


def score(made: Trained, one: OpenedSet) -> Fields:
    opened, history = made.opened, made.history
    if further := one is not opened.first:  # the time of the training counts once
        history = replace(history, dev_curve=[], metrics={}, seconds=0.0)
    chooses = opened.loss is not None and one.domain.recipe.validate_every is not None
    start = time.perf_counter()
    evaluation = evaluated(one.domain, made.model, further and chooses)
    spent = time.perf_counter() - start
    seconds = {"seconds_training": history.seconds, "seconds_evaluation": spent}
    return {
        "status": "ok",
        "metrics": {**evaluation.metrics, **history.metrics},
        "main": evaluation.main,
        "details": {
            **history.details,
            **as_details(evaluation),
            **facts(opened, one),
            **seconds,
            **in_lines(learned_details(opened.loss)),
        },
        "seconds": sum(seconds.values()),
        "peak_memory_mib": made.peak.mib,
    }


@ranks.by_first
def evaluated(domain: AnyDomain, model: nn.Module, validates: bool) -> Evaluation:
    """Score the model, by its validation part too where it was trained on another set."""
    evaluation = domain.evaluate(model)
    if validates:
        assert isinstance(domain, Validates), "it is of the training's kind"
        evaluation = replace(evaluation, validation=domain.validate(model))
    return evaluation


def facts(opened: Opened, one: OpenedSet) -> Fields:
    """Return what a record's details say of the data that were read, before any training."""
    read = one.report.as_json()
    return in_lines(
        {
            **({"scored_data": one.scored} if one.scored != one.cell.data_hash else {}),
            **({} if one is opened.first else {"trained_as": opened.first.cell.key}),
            **one.domain.notes(trained=one.trains),
            **({"report": read} if read else {}),
        }
    )


def foretell(experiment: Experiment, seed: int, options: Options) -> list[Fields]:
    """Return what the record of each cell of a training says, whatever the training finds."""
    opened = opening.open_cells(experiment, seed, options)
    return [
        {**one.cell.identity, **made_by(opened, one.cell), "details": facts(opened, one)}
        for one in opened.sets
    ]


def export(first: OpenedSet, model: nn.Module, folder: Path) -> None:
    """Write the model and its cell; where that fails, the record is kept."""
    assert isinstance(first.domain, Exports), "check_export has refused it"
    try:
        first.domain.export(model, folder)
        identity = store.canonical(first.cell.identity)
        (folder / experiment.CELL_FILE).write_text(identity + "\n", "utf-8")
    except Exception as error:
        tell(f"--export {folder} failed ({cause(error)}): the record is kept, the model is not")


def publish(opened: Opened, outcomes: Sequence[Fields]) -> tuple[Record, Path]:
    """Publish the records, and return the one that was asked for, with its path."""
    if not ranks.is_first():
        cell = opened.asked.cell
        record = cast(Record, {**cell.identity, **outcomes[opened.place]})
        return record, cell.path(opened.options.results)
    both = zip(opened.sets, outcomes, strict=True)
    published = [publish_result(opened, one.cell, outcome) for one, outcome in both]
    record, path = published[opened.place]
    if record["status"] in store.FINAL_STATUSES:
        opened.checkpoint.unlink(missing_ok=True)
    return record, path


def publish_result(opened: Opened, cell: Cell, outcome: Fields) -> tuple[Record, Path]:
    """Publish the record and return the one that stands, which may be another runner's.

    Raises:
        NotWritten: it cannot be published; it is on standard error then.
    """
    results = opened.options.results
    about = {"schema": store.SCHEMA, **cell.identity, "key": cell.key}
    record = cast(Record, {**about, **outcome, **made_by(opened, cell)})
    path = cell.path(results)
    if record["status"] not in store.FINAL_STATUSES:
        path = cell.path(results, f".{record['status']}-{time.time_ns()}")
    try:
        store.publish_record(record, path)
    except OSError as error:
        with suppress(OSError):  # a worker's standard error is a file, perhaps on the same disk
            tell(json.dumps(record))  # the disk may be full: the number is not lost
        free = f"{results} has {files.free_mib(results):.0f} MiB free"
        raise NotWritten(
            f"cannot write {path} ({error.strerror}): the record is printed above; "
            f"{free}, make room and repeat the command",
            record,
        ) from None
    return reading.find_record(path) or record, path


def made_by(opened: Opened, cell: Cell) -> Fields:
    """Return the record's fields that say what made it: command, machine, files of the loss."""
    device = opened.first.domain.device
    return {
        "command": run_command(cell.experiment, cell.seed, device_words(opened.options, device)),
        **({"own_loss": own} if (own := cell.experiment.loss.files) else {}),
        "environment": environment(device, opened.compiled),
    }


def device_words(options: Options, device: torch.device) -> list[str]:
    """Return the words of `bench run` that say what computes.

    Folders of this machine are left out: a record goes to others.
    """
    several = ranks.world_size() > 1
    words = ["--device", device.type if several else str(device)]
    words += ["--threads", str(torch.get_num_threads())]
    words += ["--devices", str(ranks.world_size())] * several
    words += ["--no-deterministic"] * (not options.deterministic)
    return words + ["--tf32"] * options.tf32 + ["--compile"] * options.compile


def in_lines(value: Any) -> Any:
    """Turn a domain's notes into texts of one line, as a record needs them."""
    if isinstance(value, dict):
        return {in_lines(key): in_lines(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_lines(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def as_details(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation's details as the record holds them.

    What a domain does not have is left out.
    """
    typed = {
        "validation": evaluation.validation,
        "folds": list(evaluation.folds) or None,
        "inner": list(evaluation.inner) or None,
        "samples": evaluation.samples or None,
        "test_part": evaluation.test_part,
        "right": packed_bits(evaluation.right) or None,
    }
    return {**evaluation.details, **{key: v for key, v in typed.items() if v is not None}}


def learned_details(loss: Loss | None) -> dict[str, Any]:
    """Return the record's detail on the parameters that a loss has learned; {} without any.

    Those of a sum have the prefix of their term, as in its `params`. What is kept of each training
    sample is summed up in single numbers.
    """
    if loss is None:
        return {}
    loss.keep_in_range()  # after the last step
    terms = loss.prefixed if isinstance(loss, Sum) else {"": loss}
    values = {
        f"{prefix}.{name}".removeprefix("."): learned_value(tensor)
        for prefix, term in terms.items()
        for name, tensor in (*term.named_parameters(), *term.remembered().items())
        if tensor.requires_grad or name in term.remembered()
    }
    return {"learned": values} if values else {}


def learned_value(parameter: Tensor) -> Any:
    """Return a scalar or a short vector as it is, and of anything else the shape."""
    shape = {"shape": list(parameter.shape)}
    if parameter.ndim > 1 or parameter.numel() > MAX_VECTOR or parameter.is_complex():
        return shape
    value = parameter.tolist()
    return shape if schema.unstorable(value) is not None else value
