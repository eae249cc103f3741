"""A number moves with its protocol's version or not at all, and is the same elsewhere.

Elsewhere cells run in another order and beside another process, with another hash seed, language,
time zone and number of threads that libraries start with. Each training is interrupted after a
drawn step and resumed.
"""

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import frozen
from contrastbench.domains.registry import DOMAINS
from contrastbench.losses.registry import LOSSES, OURS
from counts import dice, times
from loss_numbers import FILE, WRITE, measured

KNOWN = frozen.read(FILE)["domains"]
ROUNDING = 1e-3  # AVX-512 against plain instructions: 4e-4; a change of meaning moves more


def moved(known: dict[str, list[float]], now: dict[str, list[float]]) -> Iterator[str]:
    for name in known.keys() & now.keys():
        same = len(known[name]) == len(now[name]) and all(
            math.isclose(a, b, rel_tol=ROUNDING, abs_tol=1e-5)
            for a, b in zip(known[name], now[name], strict=False)
        )
        if not same:
            yield f"{name}: {known[name]} is now {now[name]}"


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    """Measure all domains in one process, as importing the libraries takes most of the time."""
    return measured()


def test_every_loss_has_its_numbers_in_every_domain() -> None:
    known = [f"{loss} in {domain}" for domain in KNOWN for loss in KNOWN[domain]["losses"]]
    names = [f"{loss} in {domain}" for domain in DOMAINS for loss in LOSSES]
    frozen.check_names(FILE.name, known, names, WRITE)


@pytest.mark.parametrize("domain", [domain for domain in DOMAINS if domain in KNOWN])
def test_no_number_moves_under_one_protocol(
    domain: str, now: dict[str, Any], found: Callable[[str], None]
) -> None:
    known, new = KNOWN[domain], now[domain]
    assert new["protocol"] == known["protocol"], f"the numbers are of another protocol: {WRITE}"
    assert list(moved(known["losses"], new["losses"])) == [], (
        f"numbers moved and {new['protocol']} did not: give the recipe's protocol a new version, "
        f"then {WRITE}"
    )
    found(f"numbers: {len(known['losses'])} losses in {domain}, value and gradient: none has moved")


def test_a_moved_number_is_seen() -> None:
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0, 2.003]}))
    assert list(moved({"a": [1.0, 2.0]}, {"a": [1.0]}))
    assert not list(moved({"a": [1.0, 2.0]}, {"a": [1.0001, 2.0]}))


WORKER = """
import json, os, signal, sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running import training
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

signal.signal(signal.SIGINT, signal.default_int_handler)
options = Options(Path(sys.argv[1]), device="cpu", threads=1)
update = training.Run.update

def stopped(work, seed, step):
    def count(run, value):
        nonlocal step
        update(run, value)
        step -= 1
        if not step:
            os.kill(os.getpid(), signal.SIGINT)
    with patch.object(training.Run, "update", count), suppress(KeyboardInterrupt):
        run_cell(work, seed, options)
        return False
    return True

for name, domain, loss, recipe, seed, step in json.loads(sys.stdin.read()):
    resumed = False
    try:
        work = make_experiment(domain, None, LossSpec(loss), recipe, tiny=True)
        if len(sys.argv) > 2:
            resumed = stopped(work, seed, step)
        record, _ = run_cell(work, seed, options)
        details = {k: v for k, v in record["details"].items() if not k.startswith("seconds")}
        said = [record["status"], record.get("metrics"), details, record["key"]]
    except UserError as error:
        said = str(error)
    print(json.dumps([name, said, resumed]))
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
    "image": {
        "width": [0.0625],
        "limit": [48, 100],
        "optimizer": ["lars", "sgd"],
        "pairing": ["both_views", "query_key", "supervised"],
    },
    "sentence": {"max_length": [8, 16], "lr": [0.0001, 0.001], "eval_every": [2, 7]},
}
ELSEWHERE = {
    **{"PYTHONHASHSEED": "17", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"},
    "OMP_NUM_THREADS": "2",  # of libraries: the record's is 1
}
Cell = tuple[str, str, str, dict[str, Any], int, int]  # with the step of an interruption


def drawn(rng: random.Random, name: str) -> Cell:
    """Return a cell with a loss, a domain, some settings, a seed and a step."""
    domain = rng.choice(list(RECIPES))
    recipe = {k: rng.choice(some) for k, some in RECIPES[domain].items() if rng.random() < 0.6}
    return name, domain, rng.choice(sorted(OURS)), recipe, rng.randrange(3), rng.randint(1, 4)


def start(cells: list[Cell], results: Path, *words: str, **more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-c", WORKER, str(results), *words]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=env, **pipes)
    assert process.stdin
    process.stdin.write(json.dumps(cells))
    process.stdin.close()
    return process


def numbers(process: "subprocess.Popen[str]") -> tuple[dict[str, Any], int]:
    """Return the numbers of cells, or why there are none, and how many were resumed."""
    with process:
        assert process.stdout
        lines = [json.loads(line) for line in process.stdout if line.startswith("[")]
    assert process.returncode == 0
    return {name: said for name, said, _ in lines}, sum(resumed for *_, resumed in lines)


def test_the_same_numbers_elsewhere(ram: Path, found: Callable[[str], None]) -> None:
    rng = dice("same numbers")
    cells = [drawn(rng, str(number)) for number in range(max(30, times(30)))]
    mixed = rng.sample(cells, len(cells))
    there = [mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]]  # two jobs, side by side
    started = [start(some, ram / "elsewhere", "interrupted", **ELSEWHERE) for some in there]
    here, _ = numbers(start(cells, ram / "here", PYTHONHASHSEED="0"))
    elsewhere = [numbers(one) for one in started]
    other = {name: said for some, _ in elsewhere for name, said in some.items()}
    assert here.keys() == other.keys()
    assert [name for name in here if here[name] != other[name]] == []
    scored = sum(isinstance(one, list) for one in here.values())
    resumed = sum(count for _, count in elsewhere)
    assert scored > len(cells) / 2
    assert resumed > scored / 2
    found(f"numbers: {len(cells)} cells run twice ({scored} scored, {resumed} resumed): 0 differ")
