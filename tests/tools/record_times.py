"""Print how long commands take over many records: `python tests/tools/record_times.py 20000`.

The records are made up, in a temporary folder, loose and then packed: every loss on twenty data
sets, five seeds each, at as many learning rates as the wanted number takes. A table shows one.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from contrastbench.benchmarks.records import packing, store
from contrastbench.benchmarks.tables.load import load_table
from made_records import record_of

SEEDS = 5
FILE = """
seeds: 0-5
domains:
  graph: {datasets: [MUTAG, PROTEINS, NCI1, NCI109, PTC_MR, DD, COLLAB, IMDB-BINARY]}
  tabular: {datasets: [breast_cancer, digits-table, iris, wine, CoverType, Higgs-100K]}
  image: {datasets: [digits, CIFAR-10, CIFAR-100]}
  sentence: {datasets: [graded, sts, transfer]}
losses: [all, none]
"""  # one seed and one place are missing, so that a plan has to forecast them


def report(count: int) -> Iterator[str]:
    """Yield a Markdown table with the seconds of each command."""
    yield "| records | as | MB | command | seconds | of them CPU |"
    yield "| ---: | --- | ---: | --- | ---: | ---: |"
    with TemporaryDirectory() as folder:
        table, results = Path(folder, "suite.yaml"), Path(folder, "results")
        table.write_text(FILE)
        made = fill(results, table, count)
        for form in ("loose", "packed"):
            if form == "packed":
                list(packing.pack(results))
            size = sum(path.stat().st_size for path in (results / "runs").rglob("*.*")) / 1e6
            merge: list[str | Path] = ["merge", results, "--results", Path(folder, f"to {form}")]
            commands: dict[str, list[str | Path]] = {
                **{name: [name, table, "--results", results] for name in ("table", "plan")},
                "compare": ["compare", table, "--results", results],
                **{"merge, all new": merge, "merge, all equal": merge},
            }
            for name, words in commands.items():
                wall, cpu = seconds_of(words)
                yield f"| {made:,} | {form} | {size:,.0f} | {name} | {wall:.1f} | {cpu:.1f} |"


def fill(results: Path, table: Path, count: int) -> int:
    """Write about so many records of a sweep file, and return their number."""
    read, rng, written = load_table(str(table)), random.Random(0), 0
    work = [read.places[row.name, name].work for name in read.columns for row in read.rows][:-1]
    places = {one.key: one for one in work}.values()  # some losses are another one by defaults
    for place in places:
        rate = place.full_recipe.lr
        for i in range(round(count / len(places) / SEEDS) or 1):
            folds = [60 + 30 * rng.random() for _ in range(10)]
            details = {"folds": folds, "loss_by_epoch": folds * 2, "test_part": "folds"}
            record = record_of(
                replace(place, recipe={**place.recipe, "lr": rate + 1e-5 * i}), 0, details=details
            )
            for seed in range(SEEDS):
                one = {**record, "seed": seed, "metrics": {"accuracy": folds[seed]}}
                path = store.record_path(results, one)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(store.serialise_record(one))
                written += 1
    return written


def seconds_of(words: list[str | Path]) -> tuple[float, float]:
    """Return the seconds and CPU seconds of a command, in a process of its own."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-P", "-m", "contrastbench", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system


if __name__ == "__main__":
    for line in report(int(sys.argv[1])):
        print(line, flush=True)
