"""Train and score from Python, as `bench run` does; brings no torch before it trains."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from operator import index
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running.options import Hook, Options, check_data_root
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

MOST_THREADS = 1024  # of a process, as on the command line; more are a slip of the hand


def run(
    domain: str,
    loss: str,
    dataset: str | None = None,
    *,
    seeds: Iterable[int] | int | str = 0,
    params: Mapping[str, Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
    target: str | None = None,
    tiny: bool = False,
    results: str | Path = "results",
    data_root: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    deterministic: bool = True,
    tf32: bool = False,
    compile: bool = False,
    log: Sequence[str] | None = None,
    on_step: Hook | None = None,
    on_epoch: Hook | None = None,
) -> list[Record]:
    """Train a loss in a domain, score it by the field's protocol, and keep a record for each seed.

    A finished cell is read, not run again. A training that fails is a record whose "status" is
    diverged, oom or failed; `records` makes a frame of the list. A file of your own loss is read
    once, before the first seed. CPU threads of torch are set for the process, and on an accelerator
    torch's switches of repeatability. So a process trains one cell at a time: calls from several
    threads wait for each other, and several processes train side by side.

    Args:
        domain: graph, image, sentence, tabular, or a package's.
        loss: a registered name, `file.py:Class`, a sum such as `"infonce + 0.5*dar"`, or `"none"`:
            the untrained encoder.
        dataset: its name; the domain's embedded one if it is left out.
        seeds: one or more, such as `range(5)` or `"0-4"`.
        params: of the loss, by name; numbers may be NumPy's.
        recipe: of the training, such as `{"epochs": 20}`; see `bench list recipes`.
        target: the column of classes in a table of your own.
        tiny: a smoke test on a tiny subset.
        results: the folder that holds runs/ with the records.
        data_root: a folder that already holds the data files; by default CONTRASTBENCH_DATA's.
        device: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        threads: CPU threads; what suits the domain if it is left out.
        deterministic: an accelerator repeats its numbers.
        tf32: an accelerator multiplies float32 in TensorFloat-32.
        compile: encoders by torch.compile; on CUDA, steps of one shape as CUDA graphs.
        log: loggers of each step, such as `["csv", "wandb"]`, which write into logs/ of results.
        on_step: is called with the number of a step and its values, such as `{"loss": 0.7}`, at the
            end of an epoch or before a validation, whose score it gets as `{"validation": 81.2}`.
        on_epoch: is called with the number of each epoch that ends, and its mean loss.

    Returns:
        A record for each seed: "status", "metrics" (percent), "main" (the metric that tables show),
        "params", "recipe", "seconds", "environment" and more.

    Raises:
        UserError: it cannot be run; the message names the fix.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> (one,) = run("graph", "none", seeds=3, tiny=True, results=folder.name)
    >>> one["status"], one["seed"], one["main"]
    ('ok', 3, 'accuracy')
    >>> folder.cleanup()
    """
    text = seeds if isinstance(seeds, str) else ",".join(map(argument_text, seed_list(seeds)))
    numbers = parse_seeds(text, "seeds")
    if not isinstance(loss, str):
        raise UserError(
            f"the loss must be a string such as 'adnce', got {type(loss).__name__}: for a class of "
            "your own give 'mine.py:Mine'"
        )
    if not isinstance(dataset, str | None):
        raise UserError(f"dataset must be a name such as 'MUTAG', got {argument_text(dataset)}")
    spec, values = LossSpec(loss, plain_values("params", params)), plain_values("recipe", recipe)
    experiment = make_experiment(domain, dataset, spec, values, tiny, target)
    options = Options(
        folder_argument("results", results),
        data_root=data_folder(data_root),
        device=device,
        threads=thread_count("threads", threads),
        deterministic=deterministic,
        tf32=tf32,
        compile=compile,
        log=log,
        on_step=on_step,
        on_epoch=on_epoch,
    )
    experiment.check()  # mistakes are named before torch is imported
    from contrastbench.benchmarks.running.runner import run_seeds

    return [record for record, _ in run_seeds(experiment, numbers, options)]


def seed_list(seeds: Iterable[int] | int) -> list[int]:
    """Return the seeds as a list; one seed alone and numpy's numbers are accepted.

    Raises:
        UserError: they are no whole numbers.
    """
    try:
        return [index(seed) for seed in (seeds if isinstance(seeds, Iterable) else [seeds])]
    except TypeError:
        raise UserError(
            f"seeds must be whole numbers, got {argument_text(seeds)}: give 0 or range(5)"
        ) from None


def folder_argument(name: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        fault = f"must be the path of a folder, got {value!r}: give a string or a Path"
        raise UserError(f"{name} {fault}")
    return Path(value)


def data_folder(value: Any) -> Path | None:
    """Return the folder of the data; without one that of CONTRASTBENCH_DATA, as `bench` does."""
    given = value if value is not None else os.environ.get("CONTRASTBENCH_DATA") or None
    root = None if given is None else folder_argument("data_root", given)
    check_data_root(root)
    return root


def thread_count(name: str, value: Any) -> int | None:
    """Return a number of threads, which may be NumPy's; None where none is given."""
    value = python_values(value)
    if value is not None and (type(value) is not int or not 1 <= value <= MOST_THREADS):
        raise UserError(
            f"{name} must be a whole number from 1 to {MOST_THREADS}, got {argument_text(value)}"
        )
    return value


def plain_values(name: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return values by key as a record can hold them; NumPy's numbers become Python's.

    Raises:
        UserError: they are no mapping, a key is no text, or a number is of another kind, such as
            a fraction, or too large for a float.
    """
    if not isinstance(values, Mapping | None):
        fault = f"has values by key, got {argument_text(values)}: give {{'key': value}}"
        raise UserError(f"{name} {fault}")
    plain: dict[str, Any] = {}
    for key, given in (values or {}).items():
        if not isinstance(key, str):
            raise UserError(f"{name}: the key {argument_text(key)} is no string: use names as keys")
        plain[key] = value = python_values(given)
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            fault = f"{argument_text(value)} is too large: give a number below 1e308"
            raise UserError(f"{name}: {key}={fault}")
        if isinstance(value, Number) and not isinstance(value, int | float):
            fault = f"{argument_text(value)} is a {type(value).__name__}: give a float"
            raise UserError(f"{name}: {key}={fault}")
    return plain


def python_values(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's, within lists and tuples too."""
    if isinstance(value, list | tuple):
        return type(value)(map(python_values, value))
    return value.tolist() if hasattr(value, "ndim") and hasattr(value, "tolist") else value


def argument_text(value: Any) -> str:
    """Return how an error shows a value: in one short line, also where Python refuses to."""
    try:
        text = repr(value)
    except ValueError:  # more digits than Python converts
        return f"a number of {value.bit_length()} bits"
    return text if len(text) <= 60 else f"{text[:60]}..."
