"""Writers of records, to be killed, each in a process that forked.py forks."""

import os
import random
import sys
from pathlib import Path
from typing import Any

import writing_worker
from contrastbench.benchmarks.cli.main import main as bench
from contrastbench.benchmarks.records import packing, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.sweeps import process
from contrastbench.benchmarks.sweeps import sweep as sweeping
from contrastbench.losses.spec import LossSpec
from forked import disk_takes
from made_records import record_of

WORK = Experiment("graph", "PROTEINS", LossSpec("infonce"), {})
RECORDS = [record_of(WORK, seed, metrics={"accuracy": 50.0 + seed}) for seed in range(40)]


def prepare() -> None:
    """A disk that is slow."""
    disk_takes(0.001)


def publish(results: str, log: str, seeds: list[int]) -> None:
    with Path(log).open("ab", buffering=0) as said:
        for seed in seeds:
            record = RECORDS[seed]
            store.publish_record(record, store.record_path(Path(results), record))
            said.write(b"%d\n" % seed)


def unite(source: str, results: str) -> None:
    merge_records([Path(source)], Path(results))


def pack(results: str) -> None:
    list(packing.pack(Path(results)))


def unpack(results: str) -> None:
    list(packing.unpack(Path(results)))


def sweep(folder: str, seed: str, longest: float) -> None:
    """`bench sweep`, whose workers live so many seconds at most; zero: as long as they like."""
    rng, command = random.Random(seed), [sys.executable, str(writing_worker.__file__)]

    class Mortal(process.Worker):
        def __init__(self, *arguments: Any) -> None:
            process.COMMAND = [*command, *([str(rng.uniform(0, longest))] if longest else [])]
            super().__init__(*arguments)

    sweeping.Worker = Mortal  # type: ignore[misc]
    os.chdir(folder)
    said = f"said-{os.getpid()}"
    for number, name in enumerate((os.devnull, said, said)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    sys.argv = ["bench", "sweep", "cells.yaml", "--device", "cpu"]
    bench()
