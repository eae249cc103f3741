"""One cell: train a loss in a domain, score it, publish the record."""

import json
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from joblib import cpu_count
from torch import nn

from contrastbench.benchmarks.records import exports, files, reading, store
from contrastbench.benchmarks.records.command import as_yaml, run_command
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.records.writable import (
    NotWritten,
    check_writable,
    prepare_output,
)
from contrastbench.benchmarks.running import loggers, ranks
from contrastbench.benchmarks.running.devices import PeakMemory, open_device
from contrastbench.benchmarks.running.environment import environment
from contrastbench.benchmarks.running.interruption import termination_kept
from contrastbench.benchmarks.running.learned import learned_details
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.running.training import (
    AnyDomain,
    Diverged,
    History,
    Log,
    step_loss,
    train,
)
from contrastbench.distributed import ProcessLost, sharing
from contrastbench.domains.base import (
    Evaluation,
    Exports,
    NumbersSamples,
    PairsByClass,
    Validates,
)
from contrastbench.domains.reading import cause
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import domain_class
from contrastbench.domains.report import DataReport
from contrastbench.errors import (
    UnusableSamples,
    UserError,
    is_out_of_memory,
    is_termination,
    printable,
    tell,
)
from contrastbench.losses.base import Loss
from contrastbench.losses.views import NEEDS_VIEWS

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
        for one in experiment.scored:
            try:
                record, path = run_cell(one, seed, made, data_hash=hashes.get(one.dataset))
            except UnusableSamples as error:
                raise UserError(f"seed {seed}: {error}") from None
            hashes[one.dataset] = record["data_hash"]
            yield record, path
            if record["status"] not in store.FINAL_STATUSES:
                break  # it is that of all
            made = replace(options, export=None, tensorboard=None, logger=None)  # the first has it


def run_cell(
    experiment: Experiment,
    seed: int,
    options: Options,
    cores: int | None = None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
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
        return run_alone(experiment, seed, options, cores, turn, data_hash)


def run_alone(
    experiment: Experiment,
    seed: int,
    options: Options,
    cores: int | None,
    turn: Callable[[], AbstractContextManager[None]],
    data_hash: str | None,
) -> tuple[Record, Path]:
    """Train and score like `run_cell`; the caller ensures that no other thread trains."""
    provenance()  # of the code that was loaded: its checkout may move on meanwhile
    cells = prepare_cells(experiment, seed, options, cores)
    place = experiment.scored.index(experiment)
    (cell, domain), device = cells[place], cells[place][1].device
    check_same_data(cell, data_hash)
    if found := ranks.from_first(lambda: finished_result(cell, domain, options)):
        return found
    training = prepare_training(*cells[0], options, cells[1:])
    for one in cells:
        tell_report(training, *one)
    crowds = device.type == "cpu" and ranks.from_first(takes_others_cores)
    with turn() if crowds else nullcontext():
        outcomes = attempt_training(training.measure, len(cells))
    if not ranks.is_first():
        return cast(Record, {**cell.identity, **outcomes[place]}), cell.path(options.results)
    both = zip(cells, outcomes, strict=True)
    record, path = [publish_result(one, made, options, device) for (one, _), made in both][place]
    if record["status"] in store.FINAL_STATUSES:
        training.checkpoint.unlink(missing_ok=True)
    return record, path


def tell_report(training: "Training", cell: Cell, domain: AnyDomain) -> None:
    """Say what was read, once for all seeds of a run, or all cells of a worker."""
    if ranks.is_first() and (cell.experiment.dataset, cell.data_hash) not in told_reports:
        told_reports.add((cell.experiment.dataset, cell.data_hash))
        for line in training.report_of(domain).lines(cell.experiment.dataset):
            tell(line)


def check_same_data(cell: Cell, data_hash: str | None) -> None:
    """Raise unless all ranks have read the same files, and data of the hash if one is given."""
    if len(set(ranks.from_all(cell.key))) > 1:
        raise UserError(
            f"{cell.experiment.label}: a file was edited while the processes read it: run it again"
        )
    if data_hash not in (None, cell.data_hash):
        raise OtherData(
            f"{cell.experiment.dataset} was edited before seed {cell.seed} read it: "
            "run it again, so that all seeds have the same data"
        )


def takes_others_cores() -> bool:
    """Return whether a training here has more threads than this process has cores among others."""
    return torch.get_num_threads() > cpu_count()


def rehearse(
    experiment: Experiment, seed: int, options: Options, cores: int | None = None
) -> Fields:
    """Take the checks and the first step of `run_cell`, and record nothing.

    Raises:
        UserError: as `run_cell`, or there is no room for the training's files.
    """
    with one_training:
        first, *others = prepare_cells(experiment, seed, options, cores)
        return attempt_training(prepare_training(*first, options, others).rehearse)[0]


def prepare_cell(
    experiment: Experiment, seed: int, options: Options, cores: int | None
) -> tuple[Cell, AnyDomain]:
    """Prepare as `prepare_cells` does, and return the experiment's own cell and its domain."""
    cells = prepare_cells(experiment, seed, options, cores)
    return cells[experiment.scored.index(experiment)]


def prepare_cells(
    experiment: Experiment, seed: int, options: Options, cores: int | None
) -> list[tuple[Cell, AnyDomain]]:
    """Read the data and set up the device and threads.

    Returns:
        The cells that one training makes, with their domains; the first one trains.

    Raises:
        UserError: no such device or loss, nothing to train, or no data.
    """
    recipe = experiment.full_recipe
    experiment.check()
    experiment.loss.check()  # a mistake is named before data are read
    with torch.random.fork_rng(devices=[]):
        experiment.loss.make()
    if experiment.trained and not recipe.trainable:
        raise UserError("this recipe has no weights to train: give --loss none")
    device = open_device(ranks.own_device(options.device), options.deterministic, options.tf32)
    first, *others = (
        (one, open_domain(one, seed, options.data_root, device)) for one in experiment.scored
    )
    cores = max(1, (cores or cpu_count()) // ranks.local_world_size())
    torch.set_num_threads(options.threads or min(first[1].threads, cores))
    contents = recipe.contents(options.data_root, experiment.trained)
    digest = first[1].data_hash(experiment.trained)
    digests = [digest, *(store.json_digest((digest, one.data_hash(False))) for _, one in others)]
    return [
        (Cell(one, seed, digest, contents), domain)
        for (one, domain), digest in zip([first, *others], digests, strict=True)
    ]


def finished_result(cell: Cell, domain: AnyDomain, options: Options) -> tuple[Record, Path] | None:
    """Return the record and its path, if the cell has one.

    Raises:
        UserError: what the options ask for would fail after the training, or be missing.
    """
    found = cell.finished(options.results)
    path = found[1] if found else cell.path(options.results)
    if found and options.export and exports.holds(options.export, found[0]):
        options = replace(options, export=None)  # it is exported there already
    check_options(options, cell.experiment.domain, domain, path, found is not None)
    return found


def prepare_training(
    cell: Cell,
    domain: AnyDomain,
    options: Options,
    others: Sequence[tuple[Cell, AnyDomain]] = (),
) -> "Training":
    """Prepare the training of a cell, which other cells score too.

    Raises:
        UserError: it cannot be scored, recorded, or trained with this loss.
    """
    if not cell.experiment.trained or cell.experiment.full_recipe.epochs == 0:
        domain.check_untrained()
    check_writable(cell.path(options.results).parent)
    for one, other in others:
        check_writable(one.path(options.results).parent)
        if shapes(other) != shapes(domain):
            trained, scored = cell.experiment.dataset, one.experiment.dataset
            raise UserError(
                f"an encoder of {trained} does not fit {scored}, whose inputs are others: "
                "score_on takes sets of like inputs"
            )
    return Training(cell, domain, make_cell_loss(cell, domain), options, others)


def shapes(domain: AnyDomain) -> dict[str, torch.Size]:
    """Return the shapes of a model's tensors."""
    return {name: tensor.shape for name, tensor in domain.model().state_dict().items()}


def make_cell_loss(cell: Cell, domain: AnyDomain) -> Loss | None:
    """Make the loss on the domain's device, with parameters drawn by the seed.

    Raises:
        UserError: it asks for classes, and this recipe does not pair by them.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell.seed)
        loss = cell.experiment.loss.make()
        return None if loss is None else loss_on_device(loss, domain)


def loss_on_device(loss: Loss, domain: AnyDomain) -> Loss:
    """Move the loss to the domain's device, and tell it the classes or samples if it needs them.

    Raises:
        UserError: it does, and this recipe does not pair by them, or this domain does not number
            its samples; or it needs two whole views, and this recipe pairs otherwise; or it reads
            classes alone, and this recipe permutes positives.
    """
    if loss.needs_classes:
        if not (domain.recipe.pairs_by_class and isinstance(domain, PairsByClass)):
            raise UserError(f"{loss.name} needs class labels: {how_by_class(domain.recipe)}")
        if domain.recipe.permuted:
            raise UserError(f"{loss.name} reads classes and no positives: leave permuted=true out")
        loss.prepare(domain.class_count, domain.dim)
    if loss.needs_samples:
        if not isinstance(domain, NumbersSamples):
            raise UserError(
                f"{loss.name} keeps numbers of each training sample, and {type(domain).__name__} "
                "does not number them: write its sample_count, and give contrasts an index"
            )
        loss.prepare_samples(domain.sample_count)
    facts = domain.recipe.pairing_facts
    if loss.own_view and facts is not None and not facts.own_view:
        tell(
            f"{loss.name} is defined with negatives of the anchor's own view, and here they are "
            "those of the recipe: give --recipe pairing=own_view"
        )
    if loss.needs_views and facts is not None and not facts.two_views:
        raise UserError(f"{loss.name} {NEEDS_VIEWS}")
    return loss.to(domain.device)


def how_by_class(recipe: Recipe) -> str:
    """Return how this recipe pairs by class, if it can.

    >>> from contrastbench.domains.graph import GraphRecipe
    >>> how_by_class(GraphRecipe())
    'give --recipe pairing=supervised'
    """
    if recipe.by_class is None:
        return "this domain has none: train in another domain (bench list domains)"
    pairs = (f"--recipe {key}={as_yaml(value)}" for key, value in recipe.by_class.items())
    return f"give {' '.join(pairs)}"


def check_options(
    options: Options, name: str, domain: AnyDomain, path: Path, finished: bool
) -> None:
    """Raise for what would fail after the training, or be missing."""
    if options.export:
        check_export(name, domain, options.export, path, finished)
    loggers.check_loggers(options.tensorboard, options.logger)
    if finished and (options.tensorboard or options.logger):
        tell(f"{path} is finished: its training is over, so no scalars are logged")


class NoData(UserError):
    """The dataset cannot be loaded, or not by this recipe; another loss or seed would not help."""


class OtherData(UserError):
    """The data are not those that were asked for."""


class NoMemory(UserError):
    """The dataset does not fit into memory now; with fewer other processes it may."""


def open_domain(
    experiment: Experiment, seed: int, data_root: Path | None, device: torch.device
) -> AnyDomain:
    """Open the dataset in its domain.

    Raises:
        NoData: it cannot be had.
        UnusableSamples: those that the seed drew do not do.
        NoMemory: it does not fit into memory.
    """
    try:
        with termination_kept():
            kind = domain_class(experiment.domain)
            return kind(experiment.dataset, experiment.full_recipe, seed, data_root, device)
    except UnusableSamples:
        raise
    except UserError as error:
        raise NoData(str(error)) from None
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = f"{experiment.dataset} does not fit into memory ({cause(error)})"
        raise NoMemory(f"{said}: use fewer samples, or a machine with more") from error


def check_export(name: str, domain: AnyDomain, folder: Path, record: Path, finished: bool) -> None:
    """Raise if the model cannot be exported: before the training, not after it."""
    if not isinstance(domain, Exports):
        raise UserError(f"domain {name} cannot export models: leave --export out")
    domain.check_export()
    if finished:
        raise UserError(
            f"{record} is finished, and a record keeps no model: "
            "train it anew in another --results folder"
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"--export {folder} is not empty: name another folder")
    prepare_output(folder, "--export")


def check_room(results: Path, model: nn.Module) -> None:
    """Raise unless there is room for checkpoints: weights, two moments, the best weights; twice."""
    state = sum(tensor.nbytes for tensor in model.state_dict().values())
    needed, free = 8 * state / 2**20 + 1, files.free_mib(results)
    if free < needed:
        raise UserError(
            f"{results} has {free:.0f} MiB free, a training here may take "
            f"{needed:.0f} MiB: make room or name another folder with --results"
        )


def attempt_training(work: Callable[[], list[Fields]], cells: int = 1) -> list[Fields]:
    """Return the work's measurements, or its failure for each of its cells.

    One training's failure never stops another. A rank that fails alone cannot wait for the others:
    it ends, and they do.
    """
    try:
        with termination_kept():
            return [{"status": "ok", **measured} for measured in work()]
    except Diverged as error:
        failure = {"status": "diverged", "details": {"error": str(error), **error.details}}
    except ProcessLost:
        raise
    except (Exception, SystemExit) as error:  # a user's loss may call sys.exit
        if is_termination(error) or not ranks.is_first():
            raise
        about = {"error": reason(error), "traceback": traceback.format_exc()}
        failure = {"status": "failed", "details": about}
        if is_out_of_memory(error):
            failure = {"status": "oom", "details": {"error": str(error) or repr(error)}}
    return [failure] * cells


def reason(error: BaseException) -> str:
    """Return why a cell failed, in one line where the remedy is known."""
    operation, lacks, _ = str(error).partition(" does not have a deterministic implementation")
    if lacks:
        return f"{operation}{lacks} on this device: give --no-deterministic"
    return str(error) if isinstance(error, UserError) else repr(error)


def publish_result(
    cell: Cell, outcome: Fields, options: Options, device: torch.device
) -> tuple[Record, Path]:
    """Publish the record and return the one that stands, which may be another runner's.

    Raises:
        NotWritten: it cannot be published; it is on standard error then.
    """
    fields = {
        "schema": store.SCHEMA,
        **cell.identity,
        "key": cell.key,
        **outcome,
        "command": run_command(cell.experiment, cell.seed, device_words(options, device)),
        **({"own_loss": own} if (own := cell.experiment.loss.files) else {}),
        "environment": environment(device),
    }
    record = cast(Record, fields)
    path = cell.path(options.results)
    if record["status"] not in store.FINAL_STATUSES:
        path = cell.path(options.results, f".{record['status']}-{time.time_ns()}")
    try:
        store.publish_record(record, path)
    except OSError as error:
        with suppress(OSError):  # a worker's standard error is a file, perhaps on the same disk
            tell(json.dumps(record))  # the disk may be full: the number is not lost
        free = f"{options.results} has {files.free_mib(options.results):.0f} MiB free"
        raise NotWritten(
            f"cannot write {path} ({error.strerror}): the record is printed above; "
            f"{free}, make room and repeat the command",
            record,
        ) from None
    return reading.find_record(path) or record, path


def device_words(options: Options, device: torch.device) -> list[str]:
    """Return the words of `bench run` that say what computes.

    Folders of this machine are left out: a record goes to others.
    """
    several = ranks.world_size() > 1
    words = ["--device", device.type if several else str(device)]
    words += ["--threads", str(torch.get_num_threads())]
    words += ["--devices", str(ranks.world_size())] * several
    words += ["--no-deterministic"] * (not options.deterministic)
    return words + ["--tf32"] * options.tf32


@dataclass(frozen=True)
class Training:
    """A cell whose training is prepared, and others that score the same model."""

    cell: Cell
    domain: AnyDomain
    loss: Loss | None
    options: Options
    others: Sequence[tuple[Cell, AnyDomain]] = ()

    @property
    def checkpoint(self) -> Path:
        """Return the path of an interrupted training's checkpoint."""
        name = f"{self.cell.key[:16]}-seed{self.cell.seed}.safetensors"
        return self.options.results / "checkpoints" / name

    @property
    def chosen(self) -> bool:
        """Return whether a validation chose the model."""
        return self.loss is not None and self.domain.recipe.validate_every is not None

    def trains(self, domain: AnyDomain) -> bool:
        """Return whether the domain's samples are trained on, and not scored alone."""
        return self.loss is not None and domain is self.domain

    @cached_property
    def reports(self) -> dict[str, DataReport]:
        """Return what was read so far, by data set."""
        return {}

    def report_of(self, domain: AnyDomain) -> DataReport:
        """Return what a domain's data hold."""
        if domain.dataset not in self.reports:
            self.reports[domain.dataset] = domain.report(trained=self.trains(domain))
        return self.reports[domain.dataset]

    def scalars(self) -> AbstractContextManager[Log | None]:
        """Return what takes the training's scalars: TensorBoard, a logger, both or none."""
        board, logger = self.options.tensorboard, self.options.logger
        results = self.options.results
        name = self.cell.path(results).relative_to(results / "runs").with_suffix("")
        if not ranks.is_first():
            board, logger = None, None
        return loggers.scalars(board and board / name, logger, name.as_posix(), self.cell.identity)

    def scored_data(self, cell: Cell, domain: AnyDomain) -> dict[str, str]:
        """Return the hash of the data that score, where others train, and the training's key."""
        digest = domain.data_hash(trained=False)
        scored = {} if digest == cell.data_hash else {"scored_data": digest}
        return scored if cell is self.cell else {**scored, "trained_as": self.cell.key}

    def rehearse(self) -> list[Fields]:
        """Take a first step, and return what it cost."""
        start, peak = time.perf_counter(), PeakMemory(self.domain.device)
        model = self.domain.model()
        check_room(self.options.results, model)
        if self.loss is not None:
            model.train()
            with sharing():
                contrasts = self.domain.contrasts(model, next(iter(self.domain.batches(0))))
                value = step_loss(self.loss, contrasts)
                value.backward()
            if not math.isfinite(value.item()):
                raise Diverged(f"the loss is {value.item()} in the first step")
        # what a device has too little of, the step itself has shown; this one is the machine's
        mib = peak.mib if self.domain.device.type == "cpu" else None
        return [{"seconds": time.perf_counter() - start, "peak_memory_mib": mib}]

    def measure(self) -> list[Fields]:
        """Train, score on each set and export if asked to; return the measurements of each set."""
        start, peak = time.perf_counter(), PeakMemory(self.domain.device)
        with self.scalars() as log:
            model, history = train(self.domain, self.loss, self.checkpoint, log)
        history.seconds += time.perf_counter() - start
        beside = History(loss_by_epoch=history.loss_by_epoch)  # its time counts once
        scored = [self.score(self.cell, self.domain, model, history)]
        scored += [self.score(cell, domain, model, beside) for cell, domain in self.others]
        outcomes: list[Fields] = [{**one, "peak_memory_mib": peak.mib} for one in scored]
        store.canonical(outcomes)  # what no record can hold, such as NaN, is a failure of this cell
        if self.options.export and ranks.is_first():
            self.export(model, self.options.export, outcomes[0])
        return outcomes

    def score(self, cell: Cell, domain: AnyDomain, model: nn.Module, history: History) -> Fields:
        """Score the model on a set, and return the measurements."""
        start = time.perf_counter()
        evaluation = ranks.from_first(lambda: domain.evaluate(model))
        if self.chosen and cell is not self.cell:
            assert isinstance(domain, Validates), "it is of the training's kind"
            validation = ranks.from_first(lambda: domain.validate(model))
            evaluation = replace(evaluation, validation=validation)
        seconds = {
            "seconds_training": history.seconds,
            "seconds_evaluation": time.perf_counter() - start,
        }
        about = {"report": found} if (found := self.report_of(domain).as_json()) else {}
        read = domain.notes(trained=self.trains(domain))
        return {
            "metrics": {**evaluation.metrics, **history.metrics},
            "main": evaluation.main,
            "details": {
                **history.details,
                **as_details(evaluation),
                **in_lines({**self.scored_data(cell, domain), **read, **about}),
                **seconds,
                **in_lines(learned_details(self.loss)),
            },
            "seconds": sum(seconds.values()),
        }

    def export(self, model: nn.Module, folder: Path, outcome: Fields) -> None:
        """Write the model with its card; where that fails, the record is kept."""
        assert isinstance(self.domain, Exports), "check_export has refused it"
        about = {"key": self.cell.key, "environment": environment(self.domain.device)}
        try:
            self.domain.export(model, folder)
            exports.note_cell(folder, self.cell.identity)
            known = {**self.cell.identity, "own_loss": self.cell.experiment.loss.files}
            exports.write_model_card(folder, {**known, **about, **outcome})
        except Exception as error:
            tell(f"--export {folder} failed ({cause(error)}): the record is kept, the model is not")


def in_lines(value: Any) -> Any:
    """Turn a domain's notes into texts of one line, as a record needs them."""
    if isinstance(value, dict):
        return {in_lines(key): in_lines(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [in_lines(one) for one in value]
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
    }
    return {**evaluation.details, **{key: v for key, v in typed.items() if v is not None}}
