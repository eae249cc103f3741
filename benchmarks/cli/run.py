"""The command `bench run`: train one loss in one domain and keep a record for each seed."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.options import parse_pairs
from contrastbench.benchmarks.cli.output import print_json, say, show
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.benchmarks.records.scored import sample_interval
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.records.store import cell_of
from contrastbench.benchmarks.running import launch
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.domains.registry import check_needs
from contrastbench.errors import UserError, tell
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import NONE, LossSpec

if TYPE_CHECKING:
    from contrastbench.benchmarks.records.store import Record

SKEWED = 60.0  # percent of test samples in one class, from which its share is said
# uniformity above which all embeddings are nearly one. On the domains' own sets it was -0.2 to -3.9
# untrained, -1.5 to -3.5 after 25 steps of InfoNCE, and above -0.06 after 25 of a loss that only
# pulls, but on tables, whose target network holds that up
COLLAPSED = -0.1


@opt.asking
def run(
    domain: opt.Required,
    loss: opt.Required,
    dataset: str | None = None,
    target: str | None = None,
    seeds: Annotated[str, Option("--seeds", "--seed")] = "0",
    set_: opt.Set = None,
    recipe: list[str] | None = None,
    tiny: opt.Tiny = False,
    json_: Annotated[bool, Option("--json")] = False,
    results: Path = Path("results"),
    devices: Annotated[int, Option(min=1)] = 1,
    export: Path | None = None,
    *,
    machine: opt.Machine,
) -> None:
    """Train a loss in a domain, score it, and record each seed.

    The score follows the protocol of the field. A finished cell is not run again.

    Args:
        loss: Registered loss, file.py:Class, sum of these, or none for the untrained encoder.
        seeds: Seeds, such as 0-4 or 0,2,5.
        json_: Print each record as one line on standard output.
        devices: Number of devices to train on; on cpu: of processes.
        export: New folder for the trained encoder.

    Example: bench run --domain graph --loss adnce --dataset MUTAG --seeds 0-4
    """
    output = launch.private_channel() if json_ else None
    check_data_root(machine.data_root)
    numbers, spec = parse_seeds(seeds), LossSpec(loss, parse_pairs("--set", set_))
    if export is not None and len(numbers) > 1:
        raise UserError(f"--export needs exactly one seed, got --seeds {seeds}")
    values = parse_pairs("--recipe", recipe)
    experiment = make_experiment(domain, dataset, spec, values, tiny, target)
    experiment.check()  # mistakes are named before torch is imported
    check_needs(domain)
    if spec.name == NONE or is_registered(spec.name):
        spec.check()
    options = machine.options(results, export=export)
    if devices > 1 and not (launch.launched() or launch.started()):  # a file may set WORLD_SIZE
        job = launch.Job(["contrastbench", *sys.argv[1:]], output or sys.stdout)
        ending = launch.launch(job, devices)
        if ending.lost:
            tell(f"bench: {ending.lost}")
        raise typer.Exit(ending.code)

    done = trained(experiment, numbers, options, output)
    for work in experiment.scored if not json_ and len(numbers) > 1 else ():
        say(seeds_summary([record for record in done if record["dataset"] == work.dataset]))
    if any(record["status"] != "ok" for record in done):
        raise typer.Exit(1)


def trained(
    experiment: Experiment, numbers: Sequence[int], options: Options, output: IO[str] | None
) -> "list[Record]":
    """Return the records of some seeds after printing each, as JSON where there is an output."""
    from contrastbench.benchmarks.running import ranks
    from contrastbench.benchmarks.running.devices import choose_device
    from contrastbench.benchmarks.running.runner import run_seeds

    works, done = experiment.scored, []
    kept = {cell_of(record) for work in works for record in work.finished(options.results)}
    with ranks.joined_ranks(choose_device(options.device)):
        for record, path in run_seeds(experiment, numbers, options):
            done.append(record)
            if ranks.is_first() and output:
                print_json(record, output)
            elif ranks.is_first():
                show("\n".join(record_lines(record, path, cell_of(record) in kept)))
            if launch.launched() and record["status"] not in store.FINAL_STATUSES:
                break  # the other ranks have ended
    return done


def record_lines(record: "Record", path: Path, kept: bool = False) -> Iterator[str]:
    yield record_line(record, path, kept)
    if has_collapsed(health := record["details"].get("health", {})):
        yield f"  {rank_text(health)}: it collapsed, all samples have nearly the same"
    if record["status"] == "diverged" and (advice := rate_text(record["recipe"])):
        yield f"  {advice}"
    if values := record["details"].get("learned"):
        yield f"  learned: {learned_text(values)}"


def has_collapsed(health: Mapping[str, float]) -> bool:
    """Return whether all samples have nearly the same embedding."""
    return health.get("uniformity", COLLAPSED) > COLLAPSED


def rank_text(health: Mapping[str, float]) -> str:
    return f"the embedding has rank {health['rank']:.1f} of {health['rank_of']:.0f}"


def rate_text(recipe: Mapping[str, Any]) -> str:
    """Return what to try where a training diverged, if its recipe has a learning rate.

    >>> rate_text({"lr": 0.03})
    'its learning rate was 0.03: try --recipe lr=0.003'
    """
    rate = recipe.get("lr")
    return f"its learning rate was {rate:g}: try --recipe lr={rate / 10:g}" if rate else ""


def record_line(record: "Record", path: Path, kept: bool = False) -> str:
    """Return a line on a record, which may be kept from an earlier run."""
    cell = f"{record['domain']} {record['dataset']} {record['loss']} seed {record['seed']}"
    if record["status"] != "ok":
        return f"{cell}: {record['status']}, {record['details']['error']} ({'kept, ' * kept}{path})"
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in record["metrics"].items())
    share: Any = record["details"].get("largest_class", 0.0)
    if share >= SKEWED or record["metrics"].get("accuracy", 100.0) <= share:
        numbers += f"; {share:.2f} is the largest class's share"
    if interval := sample_interval(record):
        numbers += "; by its test samples {:.2f} to {:.2f}".format(*interval)
    return f"{cell}: {numbers} ({'kept, ' * kept}{record['seconds']:.1f} s, {path})"


def learned_text(values: Mapping[str, Any]) -> str:
    """Return learned values in words.

    >>> learned_text({"t": 0.123456, "weights": [1.0, 2.0], "proxies": {"shape": [6, 32]}})
    't 0.1235, weights [1, 2], proxies 6 x 32'
    """
    return ", ".join(f"{name} {four_digits(value)}" for name, value in values.items())


def four_digits(value: Any) -> str:
    if isinstance(value, dict):
        return " x ".join(map(str, value.get("shape", ()))) or "a number out of bounds"
    if isinstance(value, list):
        return f"[{', '.join(map(four_digits, value))}]"
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)


def seeds_summary(done: "list[Record]") -> str:
    good = [record["metrics"][record["main"]] for record in done if record["status"] == "ok"]
    if len(good) < 2:
        return f"{len(good)} of {len(done)} seeds are ok: no mean over seeds"
    main = next(record["main"] for record in done if record["status"] == "ok")
    spread = f"{fmean(good):.2f} ± {stdev(good):.2f}"
    return f"{main}: {spread} over {len(good)} of {len(done)} seeds (ddof 1)"
