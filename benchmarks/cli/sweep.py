"""`bench sweep`, `plan`, `merge` and `pack`: many cells, and folders of records."""

from pathlib import Path
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import check_data_root, parse_losses, parse_pairs
from contrastbench.benchmarks.records.moment import one_moment
from contrastbench.benchmarks.running.options import Options
from contrastbench.losses.errors import UserError


def sweep(
    what: opt.What,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes at a time, spread over the CUDA devices; default: 1."),
    ] = None,
    jobs_per_device: Annotated[
        int | None, typer.Option(min=1, help="So many on each device instead.")
    ] = None,
    loss: opt.Join = None,
    only: opt.Only = None,
    seeds: opt.Seeds = None,
    tiny: opt.Tiny = False,
    selection: opt.Selection = None,
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    deterministic: opt.Deterministic = True,
    tf32: opt.TF32 = False,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE: jobs=8, timeout_min=600, slurm_partition=gpu, ... of submitit."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Try first steps before, as `bench check`.")
    ] = True,
) -> None:
    """Run every missing cell of a table or of a sweep file; interrupt and repeat at will.

    With --loss those of the losses alone, which join a sweep that does not have them.
    With --slurm the cells are shared by so many Slurm jobs, each with --jobs processes; there
    nothing is tried before.
    Exit code 1: some cells have no result.

    Example: bench sweep adnce-table5 --jobs 2 --only column=PROTEINS
    """
    from contrastbench.benchmarks.sweeps.check import check as try_first
    from contrastbench.benchmarks.sweeps.plan import make_plan, unfinished
    from contrastbench.benchmarks.sweeps.sweep import run

    if jobs and jobs_per_device:
        raise UserError(
            "--jobs is of all devices, --jobs-per-device of each: leave one of them out"
        )
    check_data_root(data_root)
    workers, per_device = jobs_per_device or jobs or 1, jobs_per_device is not None
    joining = parse_losses(loss or [], {})
    plan = make_plan(what, only or [], seeds, tiny, selection, results, True, joining)
    options = Options(results, data_root, device, deterministic=deterministic, tf32=tf32)
    if slurm:
        from contrastbench.benchmarks.sweeps.slurm import submit

        for job in submit(plan, options, workers, parse_pairs("--slurm", slurm)):
            typer.echo(f"job {job.job_id}: {job.paths.stdout}")
        return
    failed, refused = False, None
    if check and len(unfinished(plan.tasks())) > workers:  # others are tried at once anyway
        checked = try_first(plan, options, workers, per_device)
        refused = checked.refused
        for line in checked.lines():
            typer.echo(f"check: {line}", err=True)
    for line, bad in run(plan, options, workers, per_device, refused):
        typer.echo(line)
        failed |= bad
    if failed:
        raise typer.Exit(1)


def check(
    what: opt.What,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    loss: opt.Join = None,
    only: opt.Only = None,
    seeds: opt.Seeds = None,
    tiny: opt.Tiny = False,
    selection: opt.Selection = None,
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
) -> None:
    """Find in seconds what a sweep would fail on hours later; nothing is recorded.

    Each dataset is read and each loss takes one step, on the device and with the recipe of its
    cells; results must take records, and memory and disk must do. Exit code 1: something fails.
    """
    from contrastbench.benchmarks.sweeps.check import check
    from contrastbench.benchmarks.sweeps.plan import make_plan

    check_data_root(data_root)
    joining = parse_losses(loss or [], {})
    plan = make_plan(what, only or [], seeds, tiny, selection, results, True, joining)
    checked = check(plan, Options(results, data_root, device), jobs)
    for line in checked.lines():
        typer.echo(line)
    if checked.failures or checked.memory:
        raise typer.Exit(1)


@one_moment()
def plan(
    what: opt.What,
    loss: opt.Join = None,
    only: opt.Only = None,
    seeds: opt.Seeds = None,
    tiny: opt.Tiny = False,
    selection: opt.Selection = None,
    results: opt.Results = Path("results"),
) -> None:
    """Cells that are done, missing or failed, and what the rest will cost."""
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.plan import lines, make_plan

    joining = parse_losses(loss or [], {})
    made = make_plan(what, only or [], seeds, tiny, selection, results, losses=joining)
    for line in lines(made, Costs(results)):
        typer.echo(line)


def merge(
    sources: Annotated[list[Path], typer.Argument(help="Folders that hold runs/ with records.")],
    results: opt.Results = Path("results"),
) -> None:
    """Add the records of other folders.

    Equal ones are kept as they are, unequal ones named and left out.
    """
    from contrastbench.benchmarks.records.merge import merge

    done = merge(sources, results)
    for line in done.unequal:
        typer.echo(f"unequal: {line}")
    typer.echo(f"{done.added} added, {done.equal} equal, {len(done.unequal)} unequal")
    if done.unequal:
        raise typer.Exit(1)


def pack(
    undo: Annotated[
        bool, typer.Option("--undo", help="Make the records of packs loose files again.")
    ] = False,
    results: opt.Results = Path("results"),
) -> None:
    """Put the finished records of each dataset into one compressed file, a pack.

    Every command reads packs beside loose files. Pack again when there are more.
    """
    from contrastbench.benchmarks.records import packing

    for line in (packing.unpack if undo else packing.pack)(results):
        typer.echo(line)
