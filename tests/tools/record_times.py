"""Measure how long commands take over many records: `python tests/tools/record_times.py 20000`.

They are tables, plans, comparisons and merges, and the records are loose and packed.
The records are made up, in a temporary folder: every loss on twenty datasets, five seeds each, at
as many learning rates as the wanted number takes, of which a table shows one.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev
from tempfile import TemporaryDirectory
from typing import NamedTuple

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packing import write_pack
from contrastbench.benchmarks.records.packs import open_pack
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables.load import load_table

DEFAULT = (20_000,)
MOST_LOOSE = 100_000  # files; a pack is for more
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
ENVIRONMENT = {
    "commit": "0" * 40,
    "device": "x86_64 CPU",
    "platform": "Linux-6.1-x86_64-with-glibc2.36",
    "python": "3.11.7",
    "threads": 1,
    "versions": {"contrastbench": "0.1.0", "numpy": "2.4.6", "torch": "2.15.0"},
}
COMMAND = """
import sys
from pathlib import Path
from contrastbench.benchmarks.cli.main import main
try:
    main()
finally:
    status = Path("/proc/self/status")  # no other system says it of a process that was forked
    lines = status.read_text().splitlines() if status.exists() else []
    peak = [int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")]
    print(f"{peak[0]:,.0f}" if peak else "-", file=sys.stderr)
"""


class Made(NamedTuple):
    """A made-up record with its bytes."""

    record: Record
    data: bytes


def report(counts: Iterable[int]) -> Iterator[str]:
    """Yield a Markdown table: wall and CPU seconds, and peak memory of each command."""
    yield "| records | as | MB | command | seconds | of them CPU | peak MB |"
    yield "| ---: | --- | ---: | --- | ---: | ---: | ---: |"
    for count in counts:
        for form in ("loose", "packed"):
            if form == "packed" or count <= MOST_LOOSE:
                with TemporaryDirectory() as folder:
                    yield from measured(Path(folder), count, form)


def measured(folder: Path, count: int, form: str) -> Iterator[str]:
    """A line for each command."""
    table, results, copy = folder / "suite.yaml", folder / "results", folder / "copy"
    table.write_text(FILE)
    write = {"loose": write_loose, "packed": write_packed}[form]
    made, datasets = 0, by_dataset(table)
    rates = round(count / sum(map(len, datasets)) / SEEDS) or 1
    for places in datasets:
        some = made_up(places, rates)
        made += write(some, places[0].folder(results).parent)
    size = sum(path.stat().st_size for path in (results / "runs").rglob("*.*")) / 1e6
    commands: dict[str, list[str | Path]] = {
        "table": ["table", table, "--results", results],
        "plan": ["plan", table, "--results", results],
        "compare": ["compare", table, "--results", results],
        "merge, all new": ["merge", results, "--results", copy],
        "merge, all equal": ["merge", results, "--results", copy],
    }
    for command, words in commands.items():
        wall, cpu, peak = run(words)
        about = f"{made:,} | {form} | {size:,.0f} | {command}"
        yield f"| {about} | {wall:.1f} | {cpu:.1f} | {peak} |"


def by_dataset(table: Path) -> list[list[Experiment]]:
    """Return the experiments of the table but the last, those of a dataset together."""
    read = load_table(str(table))
    work = [read.places[row.name, name].work for name in read.columns for row in read.rows][:-1]
    once = {one.key: one for one in work}  # some losses are another one by their defaults
    return [list(group) for _, group in groupby(once.values(), lambda one: one.dataset)]


def made_up(places: list[Experiment], rates: int) -> Iterator[Made]:
    """Records of places at so many learning rates, by the folders of their losses and by key."""
    for work in sorted(places, key=lambda work: work.folder(Path()).name):
        cells = [cell(work, i) for i in range(rates)]
        shown = [record(cells[0], random.Random(f"{work.key}{seed}")) for seed in range(SEEDS)]
        texts = [
            store.serialise_record({**one, "seed": seed}).decode() for seed, one in enumerate(shown)
        ]
        for of in sorted(cells, key=lambda of: str(of["key"])):
            for seed, (one, text) in enumerate(zip(shown, texts, strict=True)):
                yield Made({**one, **of, "seed": seed}, retold(text, cells[0], of))


def cell(work: Experiment, i: int) -> Record:
    """The identity of a place at its i-th learning rate, with its key."""
    recipe = work.full_recipe.model_dump(mode="json")
    identity = {
        "domain": work.domain,
        "dataset": work.dataset,
        "loss": work.loss.complete.name,
        "loss_code": "",
        "params": work.loss.complete.params,
        "recipe": {**recipe, "lr": recipe["lr"] + 1e-5 * i},
        "protocol": work.full_recipe.protocol,
        "data_hash": store.json_digest(work.dataset),
    }
    return {**identity, "key": store.key(identity)}


def record(of: Record, rng: random.Random) -> Record:
    """A record with such numbers as graph records have."""
    folds = [60 + 30 * rng.random() for _ in range(10)]
    return {
        **of,
        "schema": store.SCHEMA,
        "status": "ok",
        "main": "accuracy",
        "metrics": {"accuracy": fmean(folds), "accuracy_std_over_folds": pstdev(folds)},
        "details": {
            "folds": folds,
            "loss_by_epoch": [5 * rng.random() for _ in range(20)],
            "samples": {"total": 1000},
            "test_part": "folds",
        },
        "seconds": 10 * rng.random(),
        "peak_memory_mib": 500 * rng.random(),
        "environment": ENVIRONMENT,
    }


def retold(text: str, old: Record, new: Record) -> bytes:
    """A record's file with another learning rate.

    Only the numbers of the first one are ever shown; to make all anew would take an hour.
    """
    before = text.rpartition('"sha256": "')[2][:64]
    for key in ("key", "lr"):
        was, now = (json.dumps({**one, **one["recipe"]}[key]) for one in (old, new))
        text = text.replace(f'"{key}": {was}', f'"{key}": {now}')
    made = json.loads(text)
    del made["sha256"]
    checksum = store.json_digest(made)
    return text.replace(before, checksum).encode()


def write_loose(made: Iterable[Made], dataset: Path) -> int:
    """A file for each record; how many there are."""
    count = 0
    for one in made:
        path = store.record_path(dataset.parents[2], one.record)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.data)
        count += 1
    return count


def write_packed(made: Iterable[Made], dataset: Path) -> int:
    """Write one pack, and return its number of records."""
    dataset.mkdir(parents=True)
    paths = ((store.record_path(dataset, one.record), one.data) for one in made)
    path = write_pack(dataset, ((path.parent.name, path.name, data) for path, data in paths))
    return sum(map(len, open_pack(path).folders.values()))


def run(words: list[str | Path]) -> tuple[float, float, str]:
    """Seconds, CPU seconds and peak MB of a command, in a process of its own."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wall, after = time.perf_counter() - start, os.times()
    *_, peak = ["", *done.stderr.splitlines()]
    if done.returncode:
        raise RuntimeError(f"bench {words[0]} ended with exit code {done.returncode}: {peak}")
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system, peak


if __name__ == "__main__":
    for line in report(map(int, sys.argv[1:]) if sys.argv[1:] else DEFAULT):
        print(line, flush=True)
