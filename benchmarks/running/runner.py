"""One cell: train a loss in a domain, score it, publish the record."""

import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from joblib import cpu_count

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Cell, Record
from contrastbench.benchmarks.running import tensorboard
from contrastbench.benchmarks.running.environment import environment, peak_memory_mib
from contrastbench.benchmarks.running.training import Diverged, train
from contrastbench.domains.base import Domain
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import domain_class, make_recipe
from contrastbench.losses.base import Loss
from contrastbench.losses.errors import UserError, is_termination
from contrastbench.losses.own import own_code
from contrastbench.losses.registry import get_loss


@dataclass(frozen=True)
class Request:
    """What the user asked for, checked before anything is trained."""

    domain: str
    dataset: str
    loss: str  # "none" scores the untrained encoder
    params: dict[str, Any]
    recipe: dict[str, Any]
    results: Path = Path("results")
    data_root: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    cores: int | None = (
        None  # CPUs of the machine, where this process is one of several and sees fewer
    )
    export: Path | None = None  # a folder for the trained model, of domains that can
    tensorboard: Path | None = None  # a folder with a subfolder for each training


def run(request: Request, seed: int) -> tuple[Record, Path]:
    """The record of one seed and where it stands: trained now, or read if the cell is finished.

    Raises:
        UserError: the request cannot be met; nothing was trained and nothing recorded.
    """
    recipe = make_recipe(request.domain, request.recipe)
    loss = None if request.loss == "none" else get_loss(request.loss, **request.params)
    if loss is not None and not recipe.trainable:
        raise UserError("this recipe has no weights to train: give --loss none")
    device = torch.device(request.device)
    domain = open_domain(request, recipe, seed, device)
    torch.set_num_threads(request.threads or min(domain.threads, request.cores or cpu_count()))
    if loss is not None:
        domain.steps(
            recipe
        )  # a corpus that is missing is named now, and one that is read belongs to the data's hash
    cell = Cell(
        request.domain,
        request.dataset,
        request.loss if loss is None else loss.name,
        own_code(loss),
        {} if loss is None else loss.params,
        {
            **recipe.model_dump(mode="json"),
            **recipe.contents(request.data_root, trained=loss is not None),
        },
        recipe.protocol,
        domain.data_hash,
        seed,
    )
    if request.export:
        check_export(domain, request, cell.path(request.results))
    if request.tensorboard:
        tensorboard.check()
    if cell.path(request.results).exists():
        return store.read(cell.path(request.results)), cell.path(request.results)
    if hasattr(domain, "check_untrained") and (loss is None or recipe.epochs == 0):
        domain.check_untrained()
    check_writable(cell.path(request.results).parent)
    checkpoint = request.results / "checkpoints" / f"{cell.key[:16]}-seed{seed}.safetensors"
    place = cell.path(request.results).relative_to(request.results / "runs").with_suffix("")
    board = request.tensorboard / place if request.tensorboard else None
    outcome = attempt(
        lambda: measure(domain, recipe, loss, device, checkpoint, request.export, board)
    )
    record, path = publish(cell, outcome, request.results, device)
    if record["status"] in store.FINAL:
        checkpoint.unlink(missing_ok=True)
    return record, path


class NoData(UserError):
    """The dataset cannot be had, or not by this recipe: no loss and no seed would change that."""


def open_domain(request: Request, recipe: Recipe, seed: int, device: torch.device) -> Domain:
    """The dataset in its domain.

    Raises:
        NoData: it cannot be had.
    """
    kind = domain_class(request.domain)
    try:
        return kind(request.dataset, recipe, seed, request.data_root, device)
    except UserError as error:
        raise NoData(str(error)) from None


def check_export(domain: Any, request: Request, record: Path) -> None:
    """Raise if the model cannot be exported: before the training, not after it."""
    if not hasattr(domain, "export"):
        raise UserError(f"domain {request.domain} exports no models: leave --export out")
    domain.check_export()
    if record.exists():
        raise UserError(
            f"{record} is finished and its model was not kept: train it anew in another --results folder"
        )
    if (
        request.export
        and request.export.exists()
        and (request.export.is_file() or any(request.export.iterdir()))
    ):
        raise UserError(f"--export {request.export} is not empty: name another folder")


def check_writable(folder: Path) -> None:
    """Raise if records cannot be written there: before the training, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(
            f"cannot write to {folder} ({error.strerror}): name another folder with --results"
        ) from None


def attempt(work: Callable[[], Record]) -> Record:
    """What the work measured, or how it failed: one cell's failure never stops another."""
    try:
        return {"status": "ok", **work()}
    except Diverged as error:
        return {"status": "diverged", "details": {"error": str(error)}}
    except (torch.OutOfMemoryError, MemoryError) as error:
        return {"status": "oom", "details": {"error": str(error)}}
    except (Exception, SystemExit) as error:  # a user's loss may call sys.exit
        if is_termination(error):
            raise
        reason = str(error) if isinstance(error, UserError) else repr(error)
        return {
            "status": "failed",
            "details": {"error": reason, "traceback": traceback.format_exc()},
        }


class NotWritten(UserError):
    """The disk did not take a record, which may be otherwise for the next seed."""

    def __init__(self, message: str, record: Record) -> None:
        super().__init__(message)
        self.record = record


def publish(
    cell: Cell, outcome: Record, results: Path, device: torch.device
) -> tuple[Record, Path]:
    """The record as it stands after publishing: another runner's, if that was first.

    Raises:
        NotWritten: it cannot be published; it is on standard error then.
    """
    record = {
        "schema": store.SCHEMA,
        **asdict(cell),
        "key": cell.key,
        **outcome,
        "environment": environment(device),
    }
    path = cell.path(results)
    if record["status"] not in store.FINAL:
        path = cell.path(results, f".{record['status']}-{time.time_ns()}")
    try:
        store.publish(record, path)
    except OSError as error:
        with suppress(OSError):  # a worker's standard error is a file, perhaps on the same disk
            print(
                store.canonical(record), file=sys.stderr
            )  # the disk may be full: the number is not lost
        raise NotWritten(
            f"cannot write {path} ({error.strerror}): the record is printed above", record
        ) from None
    return store.read(path), path


def measure(
    domain: Domain,
    recipe: Recipe,
    loss: Loss | None,
    device: torch.device,
    checkpoint: Path,
    export: Path | None = None,
    board: Path | None = None,
) -> Record:
    """Train, score, export if asked to, and say what it took."""
    start = time.perf_counter()
    with tensorboard.scalars(board) as log:
        model, history = train(domain, recipe, loss, checkpoint, log)
    trained = time.perf_counter()
    evaluation = domain.evaluate(model)
    end = time.perf_counter()
    if export:
        domain.export(model, export)
    seconds = {"seconds_training": trained - start, "seconds_evaluation": end - trained}
    return {
        "metrics": evaluation.metrics,
        "main": evaluation.main,
        "details": {**history.details, **evaluation.details, **seconds},
        "seconds": end - start,
        "peak_memory_mib": peak_memory_mib(device),
    }
