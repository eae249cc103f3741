"""One cell: train a loss in a domain, score it, publish the record."""

import hashlib
import inspect
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from contrastbench.benchmarks import records
from contrastbench.benchmarks.environment import environment, peak_memory_mib
from contrastbench.benchmarks.optimizers import make_optimizer, make_schedule
from contrastbench.benchmarks.records import Cell, Record
from contrastbench.domains.base import Domain
from contrastbench.domains.progress import Progress
from contrastbench.domains.recipes import Recipe, make_recipe
from contrastbench.domains.registry import domain_class
from contrastbench.losses.base import Loss, parts
from contrastbench.losses.errors import UserError
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


class Diverged(Exception):
    """The loss is no longer a number."""


def run(request: Request, seed: int) -> tuple[Record, Path]:
    """The record of one seed and where it stands: trained now, or read if the cell is finished.

    Raises:
        UserError: the request cannot be met; nothing was trained and nothing recorded.
    """
    recipe = make_recipe(request.domain, request.recipe)
    loss = None if request.loss == "none" else get_loss(request.loss, **request.params)
    if loss and not recipe.trainable:
        raise UserError("this recipe has no weights to train: give --loss none")
    kind, device = domain_class(request.domain), torch.device(request.device)
    torch.set_num_threads(request.threads or kind.threads)
    domain = kind(request.dataset, recipe, seed, request.data_root, device)
    cell = Cell(
        request.domain,
        request.dataset,
        loss.name if loss else request.loss,
        own_code(loss),
        loss.params if loss else {},
        recipe.model_dump(mode="json"),
        recipe.protocol,
        domain.data_hash,
        seed,
    )
    if cell.path(request.results).exists():
        return records.read(cell.path(request.results)), cell.path(request.results)
    check_writable(cell.path(request.results).parent)
    return publish(cell, attempt(lambda: measure(domain, recipe, loss, device)), request.results, device)


def own_code(loss: Loss | None) -> str:
    """Sha256 over the files of losses from outside this package, which a user may edit between two runs."""
    kinds = [kind for _, part in parts(loss) for kind in type(part).__mro__] if loss else []
    own = [kind for kind in kinds if not kind.__module__.startswith(("contrastbench.", "torch.", "builtins"))]
    code = [f.__code__.co_filename for kind in own for f in vars(kind).values() if inspect.isfunction(f)]
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in sorted(set(code)))).hexdigest() if code else ""


def check_writable(folder: Path) -> None:
    """Raise if records cannot be written there: before the training, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"cannot write to {folder} ({error.strerror}): name another folder with --results") from None


def attempt(work: Callable[[], Record]) -> Record:
    """What the work measured, or how it failed: one cell's failure never stops another."""
    try:
        return {"status": "ok", **work()}
    except Diverged as error:
        return {"status": "diverged", "details": {"error": str(error)}}
    except (torch.OutOfMemoryError, MemoryError) as error:
        return {"status": "oom", "details": {"error": str(error)}}
    except Exception as error:
        return {"status": "failed", "details": {"error": repr(error), "traceback": traceback.format_exc()}}


def publish(cell: Cell, outcome: Record, results: Path, device: torch.device) -> tuple[Record, Path]:
    """The record as it stands after publishing: another runner's, if that was first."""
    record = {"schema": records.SCHEMA, **asdict(cell), "key": cell.key, **outcome, "environment": environment(device)}
    path = cell.path(results)
    if record["status"] not in records.FINAL:
        path = cell.path(results, f".{record['status']}-{time.time_ns()}")
    try:
        records.publish(record, path)
    except OSError as error:
        print(records.canonical(record), file=sys.stderr)  # the disk may be full: the number is not lost
        raise UserError(f"cannot write {path} ({error.strerror}): the record is printed above") from None
    return records.read(path), path


def measure(domain: Domain, recipe: Recipe, loss: Loss | None, device: torch.device) -> Record:
    """Train, score, and say what it took."""
    start = time.perf_counter()
    model, curve = train(domain, recipe, loss)
    trained = time.perf_counter()
    evaluation = domain.evaluate(model)
    end = time.perf_counter()
    seconds = {"seconds_training": trained - start, "seconds_evaluation": end - trained}
    return {
        "metrics": evaluation.metrics,
        "main": evaluation.main,
        "details": {**evaluation.details, **seconds, "loss_by_epoch": curve},
        "seconds": end - start,
        "peak_memory_mib": peak_memory_mib(device),
    }


def train(domain: Domain, recipe: Recipe, loss: Loss | None) -> tuple[nn.Module, list[float]]:
    """The model after all epochs, and the mean loss of each; untrained without a loss."""
    model = domain.model(recipe)
    if loss is None:
        return model, []
    steps = recipe.epochs * domain.steps(recipe)
    optimizer = make_optimizer(recipe, model.parameters())
    schedule = make_schedule(recipe, optimizer, steps)
    curve: list[float] = []
    with Progress(steps, "training") as progress:
        for epoch in range(recipe.epochs):
            model.train()
            values = []
            for batch in domain.batches(recipe, epoch):
                value = torch.stack([loss(contrast) for contrast in domain.contrasts(model, batch)]).sum()
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                schedule.step()
                values.append(value.detach())
                progress.step(f"epoch {epoch + 1}")
            curve.append(torch.stack(values).mean().item())
            if not math.isfinite(curve[-1]):
                raise Diverged(f"the loss is {curve[-1]} in epoch {epoch + 1}")
    return model, curve
