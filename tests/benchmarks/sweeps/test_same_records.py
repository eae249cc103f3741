"""One sweep, four ways: a laptop, several devices, a cluster's jobs by classes, merged shards."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ending
from alike import nearly, numbers
from contrastbench.benchmarks.records.store import read_record
from warm import python

# in float64, so that ranks differ by rounding alone; SGD, as Adam makes much of that
LOSS = Path(ending.__file__).with_name("widened.py")
SIZES = "limit: 42, batch_size: 14, folds: 3, optimizer: sgd, lr: 0.000001"
SWEEP = f"""
seeds: 0-1
losses: [none, "{LOSS}:Widened"]
domains:
  graph:
    recipe: {{{SIZES}}}
    datasets: [motifs: {{epochs: 2}}, label-pairs: {{epochs: 1}}]
"""
CLASSES = """
resources:
  light: {recipe: {epochs: 1}, hours: 1}
  large: {hours: 2, devices: 2}
"""
CELLS = 8
SRUN = """#!/bin/bash
shift 2  # srun's option, and the path of `bench`, which starts in milliseconds here
exec {python} -m contrastbench "$@"
"""
JOB = {"SLURM_CPUS_PER_TASK": "2", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "0"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the sweep, its classes and a program in the place of srun."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SWEEP)
    Path("classes.yaml").write_text(CLASSES)
    Path("srun").write_text(SRUN.format(python=python()))
    Path("srun").chmod(0o755)
    for name, value in {"PATH": f"{tmp_path}:/usr/bin:/bin", **JOB}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def bench(*words: str) -> str:
    return ran(python(), "-m", "contrastbench", *words)


def sweep(results: str, *words: str) -> str:
    return bench("sweep", "my.yaml", "--device=cpu", "--check=never", "--results", results, *words)


def ran(*words: str, text: str | None = None) -> str:
    """Return what a command prints; its exit code must be 0."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return done.stdout


def records(results: str) -> dict[str, Any]:
    """Return the records of a folder by the name of their file, which holds the key."""
    return {
        path.name: numbers(read_record(path)) for path in Path(results).glob("runs/*/*/*/*.json")
    }


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_four_ways_leave_the_same_records() -> None:
    sweep("laptop", "--jobs", "1")
    sweep("devices", "--devices", "4")
    classes = ["--resources", "classes.yaml"]
    scripts = sweep("cluster", *classes, "--slurm", "print=true").split("#!/bin/bash\n")[1:]
    assert [script.count("--devices 2") for script in scripts] == [0, 1]
    for script in scripts:
        assert "class" in ran("bash", text=script)
    for part in ("0", "1"):
        sweep(f"shard{part}", "--shard", f"{part}/2")
    bench("merge", "shard0", "shard1", "--results", "merged")
    expected = records("laptop")
    assert len(expected) == CELLS
    for way in ("devices", "cluster", "merged"):
        assert records(way) == nearly(expected), way
