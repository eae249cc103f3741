"""Commands `bench sweep`, `plan`, `merge` and `pack`: many cells and their records."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.options import parse_losses, parse_pairs
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.running.launch import launched
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.domains.reading import needing
from contrastbench.errors import UserError, tell

if TYPE_CHECKING:
    from contrastbench.benchmarks.sweeps.plan import Plan

CPUS_PER_GPU = 8  # of a Slurm job: views, probes and workers beside the kernels


@opt.asking
def sweep(
    asked: opt.Cells,
    jobs: str | None = None,
    devices: Annotated[int | None, Option(min=1)] = None,
    slurm: list[str] | None = None,
    *,
    machine: opt.Machine,
) -> None:
    """Run every missing cell of a table or of a sweep file.

    You may interrupt and repeat the command. With --loss it runs only the cells of these losses,
    after a forecast of the time in each domain.

    A seed of each row and column runs first, so that what cannot run fails early.

    With --slurm, Slurm jobs share the cells; each has --jobs processes. print=true shows their
    script alone.
    A job near its time limit (time=600 is in minutes) writes checkpoints and is queued again.
    Exit code 1: some cells have no result.

    With --shard, machines that share no folder run a part of the cells each, and bench merge
    unites their records.

    With --devices N, each training has N devices, and --jobs counts trainings.

    Args:
        jobs: Processes: 8 over all devices, or 2/device on each; default: 1.
        devices: Number of devices of each training; on cpu: of processes.
        slurm: Setting KEY=VALUE: jobs=8, or submitit's, such as time=600.

    Example: bench sweep adnce-table5 --jobs 2 --only column=PROTEINS
    Example: bench sweep standard --loss mine.py:Mine
    Example: bench sweep adnce-table4 --jobs 2 --devices 4
    Example: bench sweep adnce-table5 --shard 0/3
    """
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.plan import forecast_line, shipped_line
    from contrastbench.benchmarks.sweeps.sweep import run_plan

    check_data_root(machine.data_root)
    if launched():
        if jobs or devices or slurm:
            line = "torchrun's processes share one cell at a time: leave out --jobs, --devices and "
            raise UserError(f"{line}--slurm")
        if os.environ["RANK"] != "0":
            from contrastbench.benchmarks.sweeps import worker

            return worker.join(machine.device, sys.stdout)
    workers, per_device = parse_jobs(jobs or "1")
    plan, results = planned(asked), asked.results
    if slurm:
        return on_slurm(plan, jobs, devices, parse_pairs("--slurm", slurm))
    options = machine.options(results, devices=1 if launched() else devices or 1)
    check_runnable(plan, options)
    if line := shipped_line(plan):
        tell(line)
    if line := forecast_line(plan, Costs(results)):
        tell(f"forecast: {line}")
    if asked.quick and asked.loss:
        whole = planned(replace(asked, quick=False, seeds=None, shard=None))
        seen = sight(asked.what, results, len(asked.loss))
        tell(f"a quick part sees {seen}; all: {forecast_line(whole, Costs(results))}")
    failed = False
    for line, bad in run_plan(plan, options, workers, per_device):
        say(line)
        failed |= bad
    if failed:
        raise typer.Exit(1)


def planned(asked: opt.Cells) -> "Plan":
    from contrastbench.benchmarks.sweeps.plan import make_plan

    about = asked.what, asked.only or [], asked.seeds, asked.tiny, asked.selection, asked.results
    return make_plan(*about, True, parse_losses(asked.loss), asked.quick, asked.shard)


@one_moment()
def sight(what: str, results: Path, joining: int) -> str:
    """Return which effects a quick part shows where so many losses join, by some of the suite's."""
    from contrastbench.benchmarks.comparison.compare import compare
    from contrastbench.benchmarks.comparison.over_sets import FEWEST, seen
    from contrastbench.benchmarks.comparison.statistics import ALPHA
    from contrastbench.benchmarks.tables.load import load_table
    from contrastbench.benchmarks.tables.resolved import resolve

    rows = compare(resolve(load_table(what, quick=True), None, results)).rows
    found = [seen(row.over, ALPHA / joining) for row in rows if row.over.freedom >= FEWEST]
    gain = f"effects from {median(found):.0f} % of what training gains" if found else ""
    return gain or "large ones alone"


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
    from contrastbench.benchmarks.sweeps.process import check_devices

    if not launched():
        check_devices(options.device, options.devices)
    if not plan.tasks():
        reasons = "; ".join(plan.reasons())
        if others := len(plan.all_tasks()):
            reasons = f"none of its {others} cells is in this part now"
        raise UserError(f"{plan.table.name} has nothing to run: {reasons}")


def on_slurm(plan: "Plan", jobs: str | None, devices: int | None, settings: dict[str, Any]) -> None:
    with needing("slurm", "--slurm"):
        from contrastbench.benchmarks.sweeps import slurm

    workers, per_device = parse_jobs(jobs or "1")
    if jobs and settings.get("nodes", 1) != 1:
        raise UserError("--slurm nodes: the nodes share one cell at a time: leave --jobs out")
    gpus = slurm.gpus_of(settings)
    if per_device and not gpus and "cpus_per_task" not in settings:
        raise UserError("--jobs N/device with --slurm: give --slurm cpus_per_task=N, the cores")
    if "gpu" in f"{settings.get('partition')}" and str(settings).count("gpu") == 1:
        tell("the partition's name says GPU, and none is asked for: --slurm gpus_per_node=1")
    cores = max(workers * (devices or 1), CPUS_PER_GPU * gpus)
    own = {"job_name": f"sweep-{plan.table.name}", "cpus_per_task": cores}
    words, logs = slurm.without_option(sys.argv[1:], "--slurm"), plan.results / slurm.LOGS
    number, script = slurm.submit(words, logs, devices or 1, {**own, **settings})
    if script:
        return show(script)
    say(f"job {number} is submitted; its logs: {logs}/{number}_*.out")
    say("this same command goes on with it, and bench plan counts what is left")


@one_moment()
@opt.asking
def plan(asked: opt.Cells, cost: Annotated[bool, Option("--cost")] = False) -> None:
    """List what is done, missing or failed, and forecast the rest.

    The forecast is the lower quartile of the times of like records: the same data and recipe, any
    loss and learning rate. Many records come from busy machines. Where cells of a paper's table
    have no like record, a last line has the hours of its counted operations.

    Args:
        cost: Add a line: what all cells take by data set.

    Example: bench plan adnce-table5 --only column=PROTEINS
    """
    from contrastbench.benchmarks.sweeps.costs import Costs
    from contrastbench.benchmarks.sweeps.plan import cost_line, plan_lines, shipped_line

    made, costs = planned(asked), Costs(asked.results)
    for line in (*plan_lines(made, costs), *([cost_line(made, costs)] if cost else [])):
        say(line)
    if line := shipped_line(made):
        tell(line)


def merge(
    sources: Annotated[list[Path] | None, Argument()] = None,
    shipped: Annotated[bool, Option("--shipped")] = False,
    results: Path = Path("results"),
) -> None:
    """Add the records of other folders to your own.

    Equal records are kept as they are. Unequal and invalid records are named and left out.

    Args:
        sources: Folders that hold runs/ with records.
        shipped: Add the records that come with contrastbench.

    Example: bench merge other/results third/results

    Example: bench merge --shipped
    """
    from contrastbench.benchmarks.records.packing import merge_records
    from contrastbench.benchmarks.records.packs import SHIPPED

    folders = [*(sources or []), *[SHIPPED] * shipped]
    if not folders:
        raise UserError("nothing to merge: name folders that hold runs/, or --shipped")
    done = merge_records(folders, results)
    for line in done.unequal:
        say(f"unequal: {line}")
    for line in done.invalid:
        say(f"invalid: {line}")
    invalid = f", {len(done.invalid)} invalid" * bool(done.invalid)
    say(f"{done.added} added, {done.equal} equal, {len(done.unequal)} unequal{invalid}")
    if done.unequal or done.invalid:
        raise typer.Exit(1)


def pack(undo: Annotated[bool, Option("--undo")] = False, results: Path = Path("results")) -> None:
    """Pack the finished records of each dataset into one file.

    The file is compressed. Every command reads packs beside loose files. Pack again when there are
    more records.

    Args:
        undo: Make the records of packs loose files again.

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
