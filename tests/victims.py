"""Writers of records and pages, to be killed, each in a process that forked.py forks."""

from pathlib import Path

from forked import disk_takes
from made_records import record_of

from contrastbench.benchmarks import report
from contrastbench.benchmarks.records import packing, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.merge import merge
from contrastbench.benchmarks.report import page  # noqa: F401 - imported before the fork
from contrastbench.benchmarks.tables import formats
from contrastbench.losses.spec import LossSpec

WORK = Experiment("graph", "PROTEINS", LossSpec("infonce"), {})
RECORDS = [record_of(WORK, seed, metrics={"accuracy": 50.0 + seed}) for seed in range(40)]


def prepare() -> None:
    """A disk that is slow."""
    disk_takes(0.001)


def publish(results: str, log: str, seeds: list[int]) -> None:
    """Publish records, and say of each that it is there."""
    with Path(log).open("ab", buffering=0) as said:
        for seed in seeds:
            record = RECORDS[seed]
            store.publish(record, store.path(Path(results), record))
            said.write(b"%d\n" % seed)


def unite(source: str, results: str) -> None:
    """`bench merge`."""
    merge([Path(source)], Path(results))


def pack(results: str) -> None:
    """`bench pack`."""
    list(packing.pack(Path(results)))


def tables(results: str) -> None:
    """`bench table --all`, which computes for long and writes little."""
    disk_takes(0.003)
    list(formats.write_all(Path(results)))


def one_page(results: str, output: str) -> None:
    """`bench report`, which computes for longer and writes once."""
    disk_takes(0.2)
    report.write(["adnce-table5"], Path(results), Path(output))
