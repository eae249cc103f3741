"""Commands `bench sweep`, `plan`, `merge` and `pack`: many cells and their records."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import parse_losses, parse_pairs
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.running.launch import launched
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.errors import UserError, tell, unknown

if TYPE_CHECKING:
    from contrastbench.benchmarks.sweeps.check import Checked
    from contrastbench.benchmarks.sweeps.plan import Plan

CHECKS = ("before", "only", "never")


def sweep(
    what: opt.What,
    jobs: Annotated[
        str | None,
        typer.Option(help="Processes: 8 over all devices, or 2/device on each; default: 1."),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="Number of devices of each training; on cpu: of processes."),
    ] = None,
    loss: opt.Join = None,
    quick: opt.Quick = False,
    only: opt.Only = None,
    seeds: opt.Seeds = None,
    tiny: opt.Tiny = False,
    selection: opt.Selection = None,
    resources: opt.Resources = None,
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    deterministic: opt.Deterministic = True,
    tf32: opt.TF32 = False,
    slurm: Annotated[
        list[str] | None,
        typer.Option(help="Setting KEY=VALUE: jobs=8, print=true, or sbatch's, such as time=600."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Part i/n of the cells, such as 0/3: for machines without a shared disk."
        ),
    ] = None,
    check: Annotated[
        str, typer.Option(help="First steps: tried before (default), only, or never.")
    ] = "before",
) -> None:
    """Run every missing cell of a table or of a sweep file.

    You may interrupt and repeat the command. With --loss it runs only the cells of these losses,
    after a forecast of the time in each domain.

    With --check only it finds in seconds what would fail hours later, and records nothing. It reads
    each dataset, and each loss takes one step on the device with the recipe of its cells. It tests
    that results can be written and that memory and disk suffice. Exit code 1: something fails.

    With --slurm, Slurm jobs share the cells; each has --jobs processes and tries the first steps.
    A job near its time limit (time=600 is in minutes) writes checkpoints and is queued again.
    With print=true the script is printed, not submitted. Exit code 1: some cells have no result.

    With --shard, machines that share no folder run a part of the cells each, and bench merge
    unites their records.

    With --devices N, each training has N devices, and --jobs counts trainings.

    Example: bench sweep adnce-table5 --jobs 2 --only column=PROTEINS
    Example: bench sweep standard --loss mine.py:Mine
    Example: bench sweep adnce-table4 --jobs 2 --devices 4
    Example: bench sweep adnce-table5 --shard 0/3
    Example: bench sweep my.yaml --check only
    """
    from contrastbench.benchmarks.sweeps.check import check_plan as try_first
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.forecast import forecast_lines
    from contrastbench.benchmarks.sweeps.plan import make_plan
    from contrastbench.benchmarks.sweeps.process import torchrun
    from contrastbench.benchmarks.sweeps.shard import WHOLE_SWEEP, parse_shard
    from contrastbench.benchmarks.sweeps.sweep import run_plan

    if check not in CHECKS:
        raise unknown("value of --check", check, CHECKS)
    check_data_root(data_root)
    if launched():
        check_alone(jobs, devices, slurm)
        check = "never"  # its ranks would end with the check
        if os.environ["RANK"] != "0":
            return follow(device)
    part = parse_shard(shard) if shard is not None else WHOLE_SWEEP
    workers, per_device = parse_jobs(jobs or "1")
    joining = parse_losses(loss or [], {})
    plan = make_plan(
        what, only or [], seeds, tiny, selection, results, True, joining, quick, resources
    )
    plan = replace(plan, shard=part)
    if slurm:
        settings = parse_pairs("--slurm", slurm, read=str)
        for line in on_slurm(plan, workers, per_device, devices, settings):
            say(line)
        return
    options = Options(
        results,
        data_root,
        device,
        deterministic=deterministic,
        tf32=tf32,
        devices=1 if launched() else devices or plan.classes.devices,
    )
    check_runnable(plan, options)
    if check == "only":
        tell_of(try_first(plan, options, workers, per_device))
        return
    for line in forecast_lines(plan, Costs(results), workers):
        tell(f"forecast: {line}")
    refused = None
    if check == "before":
        refused = refused_at_first(plan, options, workers, per_device)
    failed = False
    with torchrun(options):
        for line, bad in run_plan(plan, options, workers, per_device, refused):
            say(line)
            failed |= bad
    if failed:
        raise typer.Exit(1)


def check_alone(jobs: str | None, devices: int | None, slurm: list[str] | None) -> None:
    """Raise where a launch by torchrun is also asked to start processes."""
    if jobs or devices or slurm:
        raise UserError(
            "torchrun's processes share one cell at a time: leave out --jobs, --devices and --slurm"
        )


def parse_jobs(text: str) -> tuple[int, bool]:
    """Return the number of processes, and whether it is that of each device.

    >>> parse_jobs("8"), parse_jobs("2/device")
    ((8, False), (2, True))
    """
    number, slash, each = text.partition("/")
    if not re.fullmatch("[1-9][0-9]{0,3}", number) or (slash and each != "device"):
        raise UserError(f"--jobs {text!r}: give a number from 1 to 9999, such as 8, or 2/device")
    return int(number), bool(slash)


def check_runnable(plan: "Plan", options: Options) -> None:
    """Raise unless there are the devices and something to run; say which devices stay idle."""
    from contrastbench.benchmarks.sweeps.slots import check_devices

    if not launched() and (idle := check_devices(options.device, options.devices)):
        tell(idle)
    if not plan.tasks():
        reasons = "; ".join(plan.reasons())
        if others := len(plan.all_tasks()):  # they are of other classes, or of other shards
            reasons = f"none of its {others} cells is in this part now"
        raise UserError(f"{plan.table.name} has nothing to run: {reasons}")


def refused_at_first(
    plan: "Plan", options: Options, workers: int, per_device: bool
) -> dict[str, str] | None:
    """Try the first steps, say what fails, and return the refusals by their scope."""
    from contrastbench.benchmarks.sweeps.check import check_plan as try_first
    from contrastbench.benchmarks.sweeps.plan import unfinished_tasks

    # as few cells as there are workers are tried at once anyway
    if len(unfinished_tasks(plan.tasks())) <= workers:
        return None
    checked = try_first(plan, options, workers, per_device)
    for line in checked.lines():
        tell(f"check: {line}")
    return checked.refused


def tell_of(checked: "Checked") -> None:
    """Print what a check has found; exit with code 1 if something fails."""
    for line in checked.lines():
        say(line)
    if checked.failures or checked.memory:
        raise typer.Exit(1)


def follow(device: str) -> None:
    """Run the cells that rank 0 says, in another process that torchrun has started."""
    from contrastbench.benchmarks.sweeps import worker

    worker.join(device, sys.stdout)


def on_slurm(
    plan: "Plan",
    workers: int,
    per_device: bool,
    devices: int | None,
    settings: dict[str, str],
) -> Iterator[str]:
    """Print the scripts of jobs that run this command, or submit them and say what comes next.

    There is one script, or one for each class of resources that has cells to run.

    Raises:
        UserError: a setting is wrong, or sbatch refuses.
    """
    from contrastbench.benchmarks.sweeps import slurm

    printed = settings.pop("print", "false")
    if printed not in ("true", "false"):
        raise UserError(f"--slurm print={printed}: give true or false")
    name, logs = slurm.job_name(plan.table.name), plan.results / slurm.LOGS
    words = slurm.without_option(sys.argv[1:], "--slurm")
    scripts = []
    for more, of_class, own in submitted(plan, devices):
        given = {**{slurm.option(key): value for key, value in settings.items()}, **own}
        if per_device and "cpus-per-task" not in given:
            raise UserError("--jobs N/device with --slurm: give --slurm cpus_per_task=N, the cores")
        scripts.append(slurm.script([*words, *more], name, logs, workers, given, of_class))
    for text in scripts:
        if printed == "true":
            yield from text.rstrip().split("\n")
            continue
        job = slurm.submit_script(text)
        yield f"job {job} is submitted; its logs: {logs}/{job}_*.log"
    if not scripts:
        yield "no class has a cell to run"
    elif printed == "false":
        yield f"next: {shlex.join(['bench', 'plan', *plan_words(words[1:])])}"
        yield "says why jobs wait and what is left; this same command, with --slurm or without,"
        yield "goes on with it"


def submitted(plan: "Plan", devices: int | None) -> Iterator[tuple[list[str], int, dict[str, str]]]:
    """Yield further words, devices of a training and settings of each job array.

    Without classes there is one. The devices of the command line are over those of a class.
    """
    from contrastbench.benchmarks.sweeps.plan import of_classes
    from contrastbench.benchmarks.sweeps.slurm import option

    classes = plan.classes.classes
    if not classes:
        yield [], devices or 1, {}
        return
    for name in of_classes(plan):
        own = devices or classes[name].ranks
        words = [] if plan.classes.chosen else ["--only", f"class={name}"]
        if own > 1 and not devices:
            words += ["--devices", str(own)]
        yield words, own, {option(key): value for key, value in classes[name].options.items()}


def plan_words(words: list[str]) -> list[str]:
    """Return the words of `bench plan` for the cells of `bench sweep` with these words."""
    from contrastbench.benchmarks.sweeps.slurm import without_option

    for name in ("--jobs", "--devices", "--check", "--data-root", "--device", "--shard"):
        words = without_option(words, name)
    switches = ("deterministic", "no-deterministic", "tf32", "no-tf32")
    return [word for word in words if word.removeprefix("--") not in switches]


@one_moment()
def plan(
    what: opt.What,
    loss: opt.Join = None,
    quick: opt.Quick = False,
    only: opt.Only = None,
    seeds: opt.Seeds = None,
    tiny: opt.Tiny = False,
    selection: opt.Selection = None,
    resources: opt.Resources = None,
    results: opt.Results = Path("results"),
    measure: Annotated[
        bool, typer.Option("--measure", help="Forecast also from three training steps here.")
    ] = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
) -> None:
    """List what is done, missing or failed, and forecast the rest.

    The forecast is the median time of like records: the same data and recipe, any loss and
    learning rate. Where jobs were submitted to Slurm, it says why they wait. With --resources it
    lists the cells of each class, and the command that submits their jobs.

    With --measure, one cell of each kind takes three training steps on the device. The plan shows
    what all steps would take, and the memory. Scoring is left out, and nothing is recorded. Exit
    code 1: something cannot be measured, as where data are missing.

    Example: bench plan adnce-table5 --only column=PROTEINS
    Example: bench plan my.yaml --measure --device cpu
    """
    from contrastbench.benchmarks.sweeps import queue, slurm
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.measured import NOT_MEASURED
    from contrastbench.benchmarks.sweeps.measured import measure as measure_kinds
    from contrastbench.benchmarks.sweeps.plan import (
        cells_ahead,
        make_plan,
        plan_lines,
        submissions,
    )

    check_data_root(data_root)
    joining = parse_losses(loss or [], {})
    made = make_plan(
        what, only or [], seeds, tiny, selection, results, True, joining, quick, resources
    )
    options = Options(results, data_root, device)
    measured = measure_kinds(cells_ahead(made), options) if measure else NOT_MEASURED
    for line in plan_lines(made, Costs(results), measured):
        say(line)
    for line in submissions(made, [word for word in sys.argv[2:] if word != "--measure"]):
        say(line)
    if (results / slurm.LOGS).is_dir():
        for line in queue.queue_lines(slurm.job_name(made.table.name)):
            say(line)
    if measured.wrong:
        raise typer.Exit(1)


def merge(
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Folders that hold runs/ with records.")
    ] = None,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Add the records that come with contrastbench.")
    ] = False,
    parquet: Annotated[
        Path | None, typer.Option(help="File for all records, one row each, with a data card.")
    ] = None,
    results: opt.Results = Path("results"),
) -> None:
    """Add the records of other folders to your own.

    Equal records are kept as they are. Unequal and invalid records are named and left out.
    With --parquet all your records are also written as one table.

    Example: bench merge other/results third/results

    Example: bench merge --shipped

    Example: bench merge --parquet data/records.parquet
    """
    from contrastbench.benchmarks.records.merge import SHIPPED, merge_records

    folders = [*(sources or []), *[SHIPPED] * shipped]
    if not folders and parquet is None:
        raise UserError("nothing to merge: name folders that hold runs/, --shipped or --parquet")
    if parquet is not None and parquet.suffix != ".parquet":
        raise UserError(f"{parquet} is to be a Parquet file: give a name that ends in .parquet")
    done = merge_records(folders, results)
    if parquet is not None:
        from contrastbench.benchmarks.records.parquet import write_all_records

        for path in write_all_records(results, parquet):
            say(path)
        if not folders:
            return
    for line in done.unequal:
        say(f"unequal: {line}")
    for line in done.invalid:
        say(f"invalid: {line}")
    invalid = f", {len(done.invalid)} invalid" * bool(done.invalid)
    say(f"{done.added} added, {done.equal} equal, {len(done.unequal)} unequal{invalid}")
    if done.unequal or done.invalid:
        raise typer.Exit(1)


def pack(
    undo: Annotated[
        bool, typer.Option("--undo", help="Make the records of packs loose files again.")
    ] = False,
    results: opt.Results = Path("results"),
) -> None:
    """Pack the finished records of each dataset into one file.

    The file is compressed. Every command reads packs beside loose files. Pack again when there are
    more records.

    Example: bench pack --results results
    """
    from contrastbench.benchmarks.records import packing

    done = f"no packs in {results}: all records are files" if undo else ""
    done = done or f"all finished records in {results} are packed already"
    for line in (packing.unpack if undo else packing.pack)(results):
        say(line)
        done = ""
    if done:
        say(done)
