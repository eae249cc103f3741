"""Train and score from Python, as `bench run` does; brings no torch before it trains."""

from collections.abc import Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.losses.errors import UserError
from contrastbench.losses.spec import LossSpec


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
        params: of the loss.
        recipe: of the training, such as `{"epochs": 20}`; see `bench list recipes`.
        target: the column of classes in a table of your own.
        tiny: a smoke test on a tiny subset.
        results: the folder that holds runs/ with the records.
        data_root: a folder that already holds the data files.
        device: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        threads: CPU threads; what suits the domain if it is left out.
        deterministic: an accelerator repeats its numbers.
        tf32: an accelerator multiplies float32 in TensorFloat-32.

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
    text = seeds if isinstance(seeds, str) else ",".join(map(str, listed(seeds)))
    numbers = parse_seeds(text)
    if not isinstance(loss, str):
        raise UserError(f"a loss is named by a text, got {type(loss).__name__}: such as 'adnce'")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise UserError(f"threads must be a whole number >= 1, got {threads!r}")
    spec = LossSpec(loss, {name: plain(value) for name, value in (params or {}).items()})
    experiment = make_experiment(domain, dataset, spec, dict(recipe or {}), tiny, target)
    root = None if data_root is None else Path(data_root)
    check_data_root(root)
    options = Options(Path(results), root, device, threads, deterministic, tf32)
    _ = experiment.full_recipe, spec.complete  # mistakes are named before torch is imported
    from contrastbench.benchmarks.running.runner import run_seeds

    store.sweep(options.results)
    return [record for record, _ in run_seeds(experiment, numbers, options)]


def listed(seeds: Iterable[int] | int) -> list[int]:
    """Seeds, of which there may be one; numpy's numbers are numbers.

    Raises:
        UserError: they are no whole numbers.
    """
    try:
        return [index(seed) for seed in (seeds if isinstance(seeds, Iterable) else [seeds])]
    except TypeError:
        raise UserError(f"seeds are whole numbers, got {seeds!r}: give 0 or range(5)") from None


def plain(value: Any) -> Any:
    """A number of numpy's as Python's."""
    return value.item() if getattr(value, "ndim", None) == 0 else value
