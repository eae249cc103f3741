"""One sweep, three ways: a laptop, several devices, merged shards."""

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
CELLS = 8


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the sweep."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SWEEP)
    return tmp_path


def bench(*words: str) -> str:
    """Return what the command prints; its exit code must be 0."""
    command = [python(), "-m", "contrastbench", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sweep(results: str, *words: str) -> str:
    return bench("sweep", "my.yaml", "--device=cpu", "--results", results, *words)


def records(results: str) -> dict[str, Any]:
    """Return the records of a folder by the name of their file, which holds the key."""
    return {
        path.name: numbers(read_record(path)) for path in Path(results).glob("runs/*/*/*/*.json")
    }


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_three_ways_leave_the_same_records() -> None:
    sweep("laptop", "--jobs", "1")
    sweep("devices", "--devices", "4")
    for part in ("0", "1"):
        sweep(f"shard{part}", "--shard", f"{part}/2")
    bench("merge", "shard0", "shard1", "--results", "merged")
    expected = records("laptop")
    assert len(expected) == CELLS
    for way in ("devices", "merged"):
        assert records(way) == nearly(expected), way
