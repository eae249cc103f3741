"""The command line: `bench`, also installed as `contrastbench`."""

import importlib
import json
import signal
import sys
import warnings
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrastbench.benchmarks.cli.analyse import app as analyse
from contrastbench.benchmarks.cli.arguments import (
    DataRoot,
    Results,
    check_data_root,
    parse_pairs,
    parse_seeds,
)
from contrastbench.losses.errors import UserError, unknown

if TYPE_CHECKING:
    from contrastbench.benchmarks.records.store import Record

# by its version typer carries a click of its own or uses the installed one; this is the right one's
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    help="Contrastive losses, unchanged, on images, sentences, graphs and tables of numbers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(analyse, name="analyse")

What = Annotated[
    str, typer.Argument(help="A table (bench list tables), smoke, or the path of a YAML file.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="KEY=VALUE of row, column, domain, dataset or loss; repeat it for more."),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="paper (default): parameters as published; or validation: chosen from grids by validation data."
    ),
]
PERF = ("losses", "graph", "image", "sentence", "tabular")  # each is a module perf_NAME


@app.command()
def run(
    domain: Annotated[str, typer.Option(help="What kind of data; see `bench list domains`.")],
    loss: Annotated[
        str, typer.Option(help="A registered loss, file.py:Class, or none: the untrained encoder.")
    ],
    dataset: Annotated[str | None, typer.Option(help="Default: the domain's embedded one.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The column of classes in a table of your own.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="0-4 or 0,2,5.")] = "0",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for the loss, e.g. mu=0.7.")
    ] = None,
    recipe: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the training, e.g. epochs=20.")
    ] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A smoke test on a tiny subset.")] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Each record as one line on standard output.")
    ] = False,
    results: Results = Path("results"),
    data_root: DataRoot = None,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, ... or auto: CUDA where there is one.")
    ] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; default: what suits the domain.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="A new folder for the trained encoder.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="A folder for scalars that TensorBoard reads.")
    ] = None,
) -> None:
    """Train a loss in a domain, score it by the field's protocol, and keep a record for each seed.

    A finished cell is not run again. Example: bench run --domain graph --loss adnce --dataset MUTAG
    --seeds 0-4
    """
    from contrastbench.benchmarks.running.channel import private_channel
    from contrastbench.domains.registry import check_domain, declaration

    output = private_channel() if json_ else sys.stdout
    check_domain(domain)
    check_data_root(data_root)
    numbers, params, changes = (
        parse_seeds(seeds),
        parse_pairs("--set", set_),
        parse_pairs("--recipe", recipe),
    )
    check_loss(loss, params)
    if export is not None and len(numbers) > 1:
        raise UserError(f"--export takes the encoder of one seed, got --seeds {seeds}")
    if target is not None:
        changes |= with_target(domain, target)

    from contrastbench.benchmarks.running.environment import (
        choose_device,
    )  # brings torch: after all that can be wrong without it
    from contrastbench.benchmarks.running.runner import Request
    from contrastbench.benchmarks.running.runner import run as run_cell

    request = Request(
        domain=domain,
        dataset=dataset or declaration(domain).default,
        loss=loss,
        params=params,
        recipe={**(declaration(domain).tiny if tiny else {}), **changes},
        results=results,
        data_root=data_root,
        device=choose_device(device),
        threads=threads,
        export=export,
        tensorboard=tensorboard,
    )
    done = []
    for seed in numbers:
        record, path = run_cell(request, seed)
        done.append(record)
        typer.echo(json.dumps(record) if json_ else describe(record, path), file=output)
    if not json_ and len(done) > 1:
        typer.echo(summary(done))
    if any(record["status"] != "ok" for record in done):
        raise typer.Exit(1)


@app.command()
def sweep(
    what: What,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    only: Only = None,
    seeds: Annotated[
        str | None, typer.Option(help="0-4 or 0,2,5; default: the file's, or 0-4.")
    ] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A smoke test on tiny subsets.")] = False,
    selection: Selection = None,
    results: Results = Path("results"),
    data_root: DataRoot = None,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, ... or auto: CUDA where there is one.")
    ] = "auto",
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE: jobs=8, timeout_min=600, slurm_partition=gpu, ... of submitit."
        ),
    ] = None,
) -> None:
    """Run every missing cell of a table or of a sweep file; interrupt and repeat at will.

    With --slurm the cells are shared by so many Slurm jobs, each with --jobs processes.

    Example: bench sweep adnce-table5 --jobs 2 --only column=PROTEINS
    """
    from contrastbench.benchmarks.sweeps.plan import make_plan
    from contrastbench.benchmarks.sweeps.sweep import Options, run
    from contrastbench.benchmarks.tables.sweep_file import check_values

    check_data_root(data_root)
    check_values(what)
    plan = make_plan(what, only or [], seeds, tiny, selection, results)
    options = Options(results, data_root, device, jobs)
    if slurm:
        from contrastbench.benchmarks.sweeps.slurm import submit

        for job in submit(plan, options, parse_pairs("--slurm", slurm)):
            typer.echo(f"job {job.job_id}: {job.paths.stdout}")
        return
    failed = False
    for line, bad in run(plan, options):
        typer.echo(line)
        failed |= bad
    if failed:
        raise typer.Exit(1)


@app.command("plan")
def plan_(
    what: What,
    only: Only = None,
    seeds: Annotated[
        str | None, typer.Option(help="0-4 or 0,2,5; default: the file's, or 0-4.")
    ] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="As for the sweep.")] = False,
    selection: Selection = None,
    results: Results = Path("results"),
) -> None:
    """Cells of a table or a sweep file that are done, missing or failed, and what the rest will cost."""
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.plan import lines, make_plan

    for line in lines(make_plan(what, only or [], seeds, tiny, selection, results), Costs(results)):
        typer.echo(line)


@app.command()
def merge(
    sources: Annotated[list[Path], typer.Argument(help="Folders that hold runs/ with records.")],
    results: Results = Path("results"),
) -> None:
    """Add the records of other folders; equal ones are kept as they are, unequal ones named and left out."""
    from contrastbench.benchmarks.records.merge import merge

    done = merge(sources, results)
    for line in done.unequal:
        typer.echo(f"unequal: {line}")
    typer.echo(f"{done.added} added, {done.equal} equal, {len(done.unequal)} unequal")
    if done.unequal:
        raise typer.Exit(1)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="losses, domains, datasets or tables.")],
) -> None:
    """What there is to choose from."""
    from contrastbench.benchmarks.cli import listing

    lists = {
        "losses": listing.losses,
        "domains": listing.domains,
        "datasets": listing.datasets,
        "tables": listing.tables,
    }
    if what not in lists:
        raise unknown("list", what, lists)
    for line in lists[what]():
        typer.echo(line)


@app.command()
def table(
    name: Annotated[
        str | None, typer.Argument(help="A table (bench list tables), or a YAML file.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="md, csv or latex.")] = "md",
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Write every table, and those of YAML files there, as md and csv into the results.",
        ),
    ] = False,
    selection: Selection = None,
    results: Results = Path("results"),
) -> None:
    """A published table beside our numbers, from the records alone."""
    from contrastbench.benchmarks.tables import formats, selections, sweep_file

    if all_ and name:
        raise UserError(f"--all writes every table: leave {name} out, or --all")
    if all_:
        for path in formats.write_all(results):
            typer.echo(path)
    elif name is None:
        raise UserError("name a table (bench list tables) or give --all")
    else:
        chosen = selections.resolve(sweep_file.load(name), selection, results)
        typer.echo(formats.render(chosen, results, format_), nl=False)


@app.command()
def audit(
    name: Annotated[str, typer.Argument(help="A table (bench list tables), or a YAML file.")],
    selection: Selection = None,
    results: Results = Path("results"),
) -> None:
    """Where the protocol behind our numbers deviates from the paper's, cell by cell, and what the paper leaves open."""
    from contrastbench.benchmarks.tables import audit, selections, sweep_file

    chosen = selections.resolve(sweep_file.load(name), selection, results)
    typer.echo(audit.report(chosen, results), nl=False)


@app.command()
def compare(
    name: Annotated[str, typer.Argument(help="A table (bench list tables), or a YAML file.")],
    baseline: Annotated[
        str | None, typer.Option(help="A row; default: the first with InfoNCE.")
    ] = None,
    test: Annotated[str, typer.Option(help="The test that Holm corrects: t or wilcoxon.")] = "t",
    alpha: Annotated[float, typer.Option(help="Wins and losses have a Holm p up to this.")] = 0.05,
    selection: Selection = None,
    format_: Annotated[str, typer.Option("--format", help="md or csv.")] = "md",
    results: Results = Path("results"),
) -> None:
    """A table's rows against a baseline row: paired tests over shared seeds and folds, wins, ties and losses, ranks."""
    from contrastbench.benchmarks.comparison import formats
    from contrastbench.benchmarks.tables import selections, sweep_file

    chosen = selections.resolve(sweep_file.load(name), selection, results)
    typer.echo(formats.render(chosen, results, format_, baseline, test, alpha), nl=False)


@app.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tables or YAML files; default: all with records.")
    ] = None,
    output: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    results: Results = Path("results"),
) -> None:
    """One self-contained HTML page: tables, comparisons, plots, and the records behind each number."""
    from contrastbench.benchmarks import report

    typer.echo(report.write(names or [], results, output))


@app.command("check-loss")
def check_loss_(
    loss: Annotated[str, typer.Argument(help="my_loss.py:MyLoss, a registered name, or a sum.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE for the loss.")] = None,
) -> None:
    """The checks that every registered loss passes, on your own."""
    from contrastbench.losses.laws import check_loss

    results = check_loss(loss, **parse_pairs("--set", set_))
    for result in results:
        typer.echo(f"{'pass' if result.passed else 'FAIL'}  {result.name:16} {result.detail}")
    passed = sum(result.passed for result in results)
    typer.echo(f"{passed} of {len(results)} checks passed")
    if passed < len(results):
        raise typer.Exit(1)


@app.command()
def perf(
    part: Annotated[str, typer.Argument(help=f"{', '.join(PERF)}.")],
    only: Annotated[
        str | None, typer.Option(help="Losses, datasets or encoders, by commas; default: a few.")
    ] = None,
    data_root: DataRoot = None,
) -> None:
    """Times and ratios measured side by side in one run."""
    if part not in PERF:
        raise unknown("benchmark", part, PERF)
    module = importlib.import_module(f"contrastbench.benchmarks.perf.{part}")
    for line in module.report(only.split(",") if only else list(module.DEFAULT), data_root):
        typer.echo(line)


@app.command()
def data(
    action: Annotated[str, typer.Argument(help="list, fetch or verify.")],
    name: Annotated[
        str | None, typer.Argument(help="A dataset; verify takes all without one.")
    ] = None,
) -> None:
    """Datasets and their downloads."""
    from contrastbench.benchmarks.cli import listing
    from contrastbench.domains.download import fetch, state
    from contrastbench.domains.registry import declaration

    known = registry.known_data()
    if action not in ("list", "fetch", "verify"):
        raise unknown("action", action, ["list", "fetch", "verify"])
    if name is not None and name not in known:
        raise unknown("dataset", name, known)
    if action == "list":
        lines = listing.data()
    elif action == "verify":
        chosen = [known[name]] if name else known.values()
        lines = (f"{dataset.name:16} {state(dataset)}" for dataset in chosen)
    elif name is None or not known[name].url:
        raise UserError(f"{name or 'fetch'}: name a dataset that is downloaded (bench data list)")
    else:
        lines = iter([str(fetch(known[name]))])
    damaged = False
    for line in lines:
        typer.echo(line)
        damaged |= action == "verify" and "DAMAGED" in line
    if damaged:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Versions, devices, what is missing and the line that adds it."""
    from contrastbench.benchmarks.cli.doctor import report

    for line in report():
        typer.echo(line)


def with_target(domain: str, column: str) -> dict[str, str]:
    """What --target changes in the recipe."""
    from contrastbench.domains.registry import declaration

    if "target" not in declaration(domain).recipe.model_fields:
        raise UserError(f"--target names a column of a table: domain {domain} has none")
    return {"target": column}


def check_loss(loss: str, params: dict[str, Any]) -> None:
    """Names are checked here, before torch is imported; values where the loss is made."""
    from contrastbench.losses.registry import LOSSES, get_loss

    if loss == "none":
        if params:
            raise UserError(f"--loss none has no parameters, got --set {next(iter(params))}")
    elif loss in LOSSES or ":" in loss:
        return
    else:
        get_loss(loss)


def describe(record: "Record", path: Path) -> str:
    """One line on a record."""
    cell = f"{record['domain']} {record['dataset']} {record['loss']} seed {record['seed']}"
    if record["status"] != "ok":
        return f"{cell}: {record['status']}, {record['details']['error']} ({path})"
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in record["metrics"].items())
    return f"{cell}: {numbers} ({record['seconds']:.1f} s, {path})"


def summary(done: "list[Record]") -> str:
    """Mean and standard deviation over seeds of the main metric."""
    good = [record["metrics"][record["main"]] for record in done if record["status"] == "ok"]
    if len(good) < 2:
        return f"{len(good)} of {len(done)} seeds are ok: no mean over seeds"
    main = next(record["main"] for record in done if record["status"] == "ok")
    return f"{main}: {fmean(good):.2f} ± {stdev(good):.2f} over {len(good)} of {len(done)} seeds (ddof 1)"


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    warnings.formatwarning = lambda message, *_: f"bench: {message}\n"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        message = str(error)
    except UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        typer.echo(
            "interrupted: finished seeds are kept, the same command goes on with the others",
            err=True,
        )
        sys.exit(130)
    typer.echo(f"bench: {message}", err=True)
    sys.exit(2)
