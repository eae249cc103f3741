"""Hand the scalars of a training to loggers, each by its own library, and to a user's functions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from contrastbench.benchmarks.records.experiment import Cell
from contrastbench.benchmarks.records.store import Fields
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.training import EPOCH, Log
from contrastbench.domains.reading import cause, reading
from contrastbench.errors import tell

Logger = tuple[Log, Callable[[], object]]  # what logs, and what ends it


def to_csv(folder: Path, name: str, about: Fields) -> Logger:
    """Return what adds rows to a CSV file, and closes it."""
    path = folder / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a", encoding="utf-8", buffering=1)
    if not file.tell():  # an interrupted training goes on in the same file
        file.write("name,value,step\n")
    return lambda *row: file.write(",".join(map(str, row)) + "\n"), file.close


def to_tensorboard(folder: Path, name: str, about: Fields) -> Logger:
    """Return what logs to TensorBoard, and closes it."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / name))
    return writer.add_scalar, writer.close


def to_wandb(folder: Path, name: str, about: Fields) -> Logger:
    """Return what logs to Weights & Biases, and ends the run; its variables say where it goes."""
    import wandb

    run = wandb.init(dir=folder, name=name, config=about, reinit="create_new")
    return lambda key, value, step: run.log({key: value}, step=step), run.finish


def to_mlflow(folder: Path, name: str, about: Fields) -> Logger:
    """Return what logs to MLflow, and ends the run; its variables say where it goes."""
    import mlflow

    if not mlflow.is_tracking_uri_set():
        mlflow.set_tracking_uri(f"sqlite:///{folder.absolute()}/mlflow.db")
    with FileLock(folder / "begin.lock"):  # two processes that make the tables damage them
        mlflow.start_run(run_name=name, nested=True)
    mlflow.log_params(about)
    return mlflow.log_metric, mlflow.end_run


OPENERS = {"csv": to_csv, "mlflow": to_mlflow, "tensorboard": to_tensorboard, "wandb": to_wandb}


@contextmanager
def scalars(options: Options, cell: Cell) -> Iterator[Log]:
    """Yield a function that takes a scalar's name, value and step.

    The training goes on without a logger that fails, for example where a disk is full.
    """
    name = str(cell.path(Path()).relative_to("runs").with_suffix(""))
    running: dict[str, Logger] = {}

    def attempt(kind: str, do: Callable[..., object], *values: Any) -> None:
        try:
            do(*values)
        except Exception as error:
            running.pop(kind, None)
            tell(f"--log {kind} failed ({cause(error)}): the training goes on without it")

    def log(key: str, value: float, step: int) -> None:
        for kind, (write, _) in tuple(running.items()) if key != EPOCH else ():
            attempt(kind, write, key, value, step)
        hook = options.on_epoch if key == EPOCH else options.on_step
        if hook:
            hook(step, {"loss" if key == EPOCH else key: value})

    for kind in options.log or ():
        (folder := options.results / "logs" / kind).mkdir(parents=True, exist_ok=True)
        with reading(f"--log {kind}", "mend it or leave it out", "does not begin"):
            running[kind] = OPENERS[kind](folder, name, cell.identity)
    try:
        yield log
    finally:
        for kind, (_, close) in tuple(running.items()):
            attempt(kind, close)
