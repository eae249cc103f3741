"""Open a cell: its data, device and loss, and all that is refused before a training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile

import torch
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from contrastbench.benchmarks.records import experiment, store
from contrastbench.benchmarks.records.command import as_yaml
from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.records.store import Record, check_writable
from contrastbench.benchmarks.running import ranks
from contrastbench.benchmarks.running.compiling import compiled_parts
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.signals import termination_kept
from contrastbench.benchmarks.running.training import AnyDomain
from contrastbench.domains.base import Exports, NumbersSamples, PairsByClass
from contrastbench.domains.reading import cause
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import domain_class
from contrastbench.domains.report import DataReport
from contrastbench.errors import UnusableSamples, UserError, is_out_of_memory, tell
from contrastbench.losses.base import Loss
from contrastbench.losses.views import NEEDS_VIEWS

told_reports: set[tuple[str, str]] = set()  # of data sets, by name and hash


class NoData(UserError):
    """The dataset cannot be loaded, or not by this recipe; another loss or seed would not help."""


class OtherData(UserError):
    """The data are not those that were asked for."""


class NoMemory(UserError):
    """The dataset does not fit into memory now; with fewer other processes it may."""


@dataclass(frozen=True)
class OpenedSet:
    """A data set that was read, and the cell that is scored on it.

    Args:
        cell: with the hash of its data.
        scored: the hash of what scores the model.
        trains: whether the model learns from it.
    """

    cell: Cell
    domain: AnyDomain
    scored: str
    trains: bool

    @cached_property
    def report(self) -> DataReport:
        return self.domain.report(self.trains)


@dataclass(frozen=True)
class Opened:
    """What one training reads: the model is of the first set, and all sets score it.

    Args:
        place: of the set that was asked for.
        loss: on the domain's device; None: the encoder stays as it is, or the loss is not yet made.
        compiled: what of the training is compiled.
    """

    sets: Sequence[OpenedSet]
    place: int
    options: Options
    loss: Loss | None = None
    compiled: Sequence[str] = ()

    @property
    def first(self) -> OpenedSet:
        """Return the set that the model is of."""
        return self.sets[0]

    @property
    def asked(self) -> OpenedSet:
        return self.sets[self.place]

    @property
    def checkpoint(self) -> Path:
        cell = self.first.cell
        name = f"{cell.key[:16]}-seed{cell.seed}.safetensors"
        return self.options.results / "checkpoints" / name


def open_cells(
    experiment: Experiment, seed: int, options: Options, cores: int | None = None
) -> Opened:
    """Read and hash the data, and set up the device and threads."""
    recipe = experiment.full_recipe
    experiment.check()
    experiment.loss.check()  # a mistake is named before data are read
    with torch.random.fork_rng(devices=[]):
        experiment.loss.make()
    own = ranks.own_device(options.device)
    device = open_device(own, options.deterministic, options.tf32)
    works = experiment.scored
    domains = [open_domain(work, seed, options.data_root, device) for work in works]
    cores = max(1, (cores or cpu_count()) // ranks.local_world_size())
    threads = options.threads or min(domains[0].threads, cores)
    torch.set_num_threads(threads)
    threadpool_limits(threads)  # of BLAS, too: a probe of few columns takes twice as long by two
    contents = recipe.contents(options.data_root, experiment.trained)
    scored = [domain.data_hash(trained=False) for domain in domains]
    digest = domains[0].data_hash(trained=True) if experiment.trained else scored[0]
    digests = [digest, *(store.json_digest((digest, other)) for other in scored[1:])]
    read = zip(works, digests, domains, scored, strict=True)
    sets = [
        OpenedSet(
            Cell(work, seed, digest, contents), domain, own, work.trained and work is works[0]
        )
        for work, digest, domain, own in read
    ]
    return Opened(sets, works.index(experiment), options)


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


def with_loss(opened: Opened) -> Opened:
    """Make the loss, look at the data, and say what was read."""
    cell, domain = opened.first.cell, opened.first.domain
    if not opened.first.trains or cell.experiment.full_recipe.length(1) == 0:
        domain.check_untrained()
    for other in opened.sets[1:]:
        if shapes(other.domain) != shapes(domain):
            trained, scored = cell.experiment.dataset, other.cell.experiment.dataset
            raise UserError(
                f"an encoder of {trained} does not fit {scored}, whose inputs are others: "
                "score_on takes sets of like inputs"
            )
    loss = make_cell_loss(cell, domain)
    compiled = compiled_parts(domain, loss) if opened.options.compile else []
    for one in opened.sets:
        tell_report(one)
        check_writable(one.cell.path(opened.options.results).parent)
    return replace(opened, loss=loss, compiled=compiled)


def tell_report(one: OpenedSet) -> None:
    """Say what was read, once for all seeds of a run, or all cells of a worker."""
    dataset = one.cell.experiment.dataset
    told, report = (dataset, one.cell.data_hash), one.report
    for line in report.lines(dataset) if told not in told_reports and ranks.is_first() else ():
        tell(line)
    told_reports.add(told)


def shapes(domain: AnyDomain) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in domain.model().state_dict().items()}


def make_cell_loss(cell: Cell, domain: AnyDomain) -> Loss | None:
    """Make the loss on the domain's device, with parameters drawn by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell.seed)
        loss = cell.experiment.loss.make()
        return None if loss is None else loss_on_device(loss, domain)


def loss_on_device(loss: Loss, domain: AnyDomain) -> Loss:
    """Move the loss to the domain's device, and tell it the classes or samples if it needs them."""
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
    loss.to(domain.device)  # in place, whatever it returns
    return loss


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        fault = f"cannot write to {folder} ({error.strerror})"
        raise UserError(f"{fault}: name another folder with --export") from None


@ranks.by_first
def finished_result(opened: Opened) -> tuple[Record, Path] | None:
    cell, options = opened.asked.cell, opened.options
    finished, export = cell.finished(options.results), options.export
    path = finished[1] if finished else cell.path(options.results)
    if export and not (finished and experiment.holds(export, finished[0])):
        domain = opened.asked.domain
        check_export(cell.experiment.domain, domain, export, path, finished is not None)
    if finished and options.log:
        tell(f"{path} is finished: its training is over, so nothing is logged")
    return finished
