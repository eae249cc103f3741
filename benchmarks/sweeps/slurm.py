"""A sweep as Slurm jobs.

Each runs the whole sweep, and they share its cells by claims and published records.
"""

from collections.abc import Mapping
from typing import Any

from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.plan import Plan
from contrastbench.benchmarks.sweeps.sweep import run
from contrastbench.losses.errors import UserError

HOURS = 24  # of a job, where timeout_min does not say


def submit(
    plan: Plan,
    options: Options,
    jobs: int,
    settings: Mapping[str, Any],
    cluster: str = "slurm",
) -> list[Any]:
    """The submitted jobs, whose output goes to the folder slurm/ of the results.

    Args:
        plan: what each of them runs.
        options: how.
        jobs: processes in each job.
        settings: jobs, their number; and submitit's parameters, such as timeout_min,
            slurm_partition, gpus_per_node.
        cluster: slurm, or submitit's local and debug.

    Raises:
        UserError: submitit or Slurm is not there, or a setting is wrong.
    """
    count = positive(settings, "jobs", 1)
    minutes = positive(settings, "timeout_min", HOURS * 60)
    try:
        import submitit
    except ModuleNotFoundError:
        raise UserError(
            '--slurm needs submitit, which is not installed: pip install "contrastbench[slurm]"'
        ) from None
    try:
        executor = submitit.AutoExecutor(
            folder=options.results.absolute() / "slurm", cluster=cluster
        )
        defaults = {
            "name": f"sweep-{plan.table.name}",
            "cpus_per_task": jobs,
        }
        given = {key: value for key, value in settings.items() if key != "jobs"}
        executor.update_parameters(**{**defaults, **given, "timeout_min": minutes})
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        raise UserError(f"--slurm: {' '.join(str(error).split())}") from None
    with executor.batch():
        return [executor.submit(work, plan, options, jobs) for _ in range(count)]


def positive(settings: Mapping[str, Any], key: str, default: int) -> int:
    """A setting that counts.

    Raises:
        UserError: it is no whole number above zero.
    """
    value = settings.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"--slurm {key}={value}: give a whole number above zero")
    return value


def work(plan: Plan, options: Options, jobs: int) -> list[str]:
    """What a job does; its result is what a sweep prints."""
    lines = [line for line, _ in run(plan, options, jobs)]
    print("\n".join(lines), flush=True)
    return lines
