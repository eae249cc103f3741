"""CPU seconds of commands, beside Python alone and the library that reads their words."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from contrastbench.benchmarks.records.packs import SHIPPED

DEFAULT = ("--help", "list losses", "list tables", "table adnce-table5", "compare standard")
BESIDE = {"python -c pass": "pass", "import typer, pydantic": "import typer, pydantic"}
RUNS, RECORDS = 5, Path("results/runs")


def report(names: Sequence[str], data_root: Path | None, device: torch.device) -> Iterator[str]:
    """Yield a line for each command: the least CPU seconds of its runs, one process at a time."""
    of = "" if RECORDS.is_dir() else ", on the records that ship: here are none"
    yield f"{'command':30} CPU seconds, the least of {RUNS}{of}"
    ours = {f"bench {name}": ["-m", "contrastbench", *name.split()] for name in names}
    for title, words in ({name: ["-c", code] for name, code in BESIDE.items()} | ours).items():
        yield line(title, words)


def line(title: str, words: Sequence[str]) -> str:
    """Return the line of a command of Python's: its seconds, or why it ended without a result."""
    try:
        return f"{title:30} {min(cpu_seconds(words) for _ in range(RUNS)):.2f}"
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
        return f"{title:30}    - {said[-1]}"


def cpu_seconds(words: Sequence[str]) -> float:
    """Run Python, and return the seconds of a core that it took.

    Where the folder has no records, it runs in that of those that ship. Whatever the environment
    says, modules are compiled once, as pip does.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    folder = None if RECORDS.is_dir() else SHIPPED.parent
    command = [sys.executable, *words]
    told = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, capture_output=True, check=True, text=True, cwd=folder, env=told)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
