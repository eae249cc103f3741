"""The same cells in two processes: order, hash seed, language and time zone change nothing."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contrastbench.losses.registry import OURS
from counts import dice, times

WORKER = """
import json, sys
from pathlib import Path
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.reproduction import flat_values
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

options = Options(Path(sys.argv[1]), device="cpu", threads=1)
for name, domain, loss, recipe, seed in json.loads(sys.stdin.read()):
    try:
        work = make_experiment(domain, None, LossSpec(loss), recipe, tiny=True)
        record, _ = run_cell(work, seed, options)
        said = [flat_values(record), record["key"]]
    except UserError as error:
        said = str(error)
    print(json.dumps([name, said]))
"""
RECIPES: dict[str, dict[str, list[Any]]] = {
    "graph": {
        "epochs": [1, 2],
        "lr": [0.01, 0.003],
        "augmentation": ["random2", "random3", "random4"],
        "pairing": ["other_view", "both_views", "supervised"],
    },
    "tabular": {
        "epochs": [1, 2],
        "lr": [0.001, 0.01],
        "optimizer": ["adam", "sgd"],
        "pairing": ["both_views", "query_key", "supervised"],
    },
}
ELSEWHERE = {"PYTHONHASHSEED": "17", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"}
Cell = tuple[str, str, str, dict[str, Any], int]


def drawn(rng: random.Random, name: str) -> Cell:
    """Return a cell with a loss, a domain, some settings and a seed."""
    domain = rng.choice(list(RECIPES))
    recipe = {k: rng.choice(some) for k, some in RECIPES[domain].items() if rng.random() < 0.6}
    return name, domain, rng.choice(sorted(OURS)), recipe, rng.randrange(3)


def numbers(cells: list[Cell], results: Path, more: dict[str, str]) -> dict[str, Any]:
    """Run the cells in a process of their own; their numbers, or why there are none."""
    words = [sys.executable, "-P", "-c", WORKER, str(results)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    given = {"input": json.dumps(cells), "capture_output": True, "text": True, "env": env}
    done = subprocess.run(words, **given)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def test_the_same_numbers_elsewhere(ram: Path, found: Callable[[str], None]) -> None:
    rng = dice("same numbers")
    cells = [drawn(rng, str(number)) for number in range(times(30))]
    here = numbers(cells, ram / "here", {"PYTHONHASHSEED": "0"})
    other = numbers(rng.sample(cells, len(cells)), ram / "elsewhere", ELSEWHERE)
    different = [name for name in here if here[name] != other[name]]
    assert different == []
    scored = sum(isinstance(one, list) for one in here.values())
    assert scored > len(cells) / 2
    found(f"numbers: {len(cells)} cells run twice ({scored} scored): 0 differ")
