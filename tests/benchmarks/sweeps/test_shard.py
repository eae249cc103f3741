"""Shards: machines without a shared folder run each cell once, and merged they have the sweep."""

import hashlib
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps.plan import WHOLE_SWEEP, Shard, Task, make_plan
from contrastbench.benchmarks.sweeps.sweep import Failure, Sweep, run_plan
from contrastbench.losses.spec import LossSpec
from counts import times
from made_records import made

TABLES = "domains: {tabular: {datasets: [digits-table]}}\n"
ONE = f"seeds: 0-3\n{TABLES}losses: [infonce, hcl, none]\ntune: {{trials: 3, seeds: [1000]}}\n"
FEW = f"seeds: 0-1\n{TABLES}losses: [hcl]\ntune: {{trials: 2, seeds: [1000]}}\n"
FINALS = f"seeds: 0-1\n{TABLES}losses: [hcl]\ntune: {{trials: 6}}\n"
NESTED = (
    "seeds: 0-1\ndomains: {graph: {datasets: [motifs]}}\nlosses: [infonce]\n"
    "tune: {trials: 2}\ncontrols: true\n"
)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    """Publish made-up records, whose scores the key decides, in place of trainings."""
    runs = Counter[tuple[str, int]]()

    def run(self: Sweep, tasks: list[Task]) -> list[Failure]:
        for task in tasks:
            runs[task.key] += 1
            publish(self.options.results, task)
        return []

    monkeypatch.setattr(Sweep, "run", run)
    return runs


def publish(results: Path, task: Task, status: str = "ok") -> None:
    scores = [float(x % 100) for x in hashlib.sha256(repr(task.key).encode()).digest()[:3]]
    details = {"validation": scores[0], "folds": scores, "inner": scores[::-1]}
    details |= {"test_part": "folds"}
    metrics = {"accuracy": scores[1]}
    made(results, task.experiment, task.seed, metrics=metrics, details=details, status=status)


def records(results: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in results.glob("runs/*/*/*/*.json")}


def swept(results: Path, shard: Shard = WHOLE_SWEEP) -> str:
    plan = make_plan("mine.yaml", [], None, False, None, results)
    lines = list(run_plan(replace(plan, shard=shard), Options(results)))
    assert not any(bad for _, bad in lines)
    return lines[-1][0]


@pytest.mark.parametrize(
    ("file", "count", "rounds"),
    [(ONE, 3, 2), (FINALS, 3, 3), (NESTED, 2, 2), (FEW, 8, 2)],
    ids=["one seed of trials", "finalists", "nested", "more shards than cells"],
)
@pytest.mark.usefixtures("in_folder")
def test_merged_shards_have_the_records_of_one_sweep(
    trained, file: str, count: int, rounds: int
) -> None:
    """Each round is the same commands, after all have the records so far."""
    Path("mine.yaml").write_text(file)
    swept(Path("whole"))
    wanted, cells = records(Path("whole")), dict(trained)
    trained.clear()
    took, waits = 0, True
    while waits:
        took += 1
        folders = [Path(f"round{took}", f"shard{i}") for i in range(count)]
        for folder in folders:
            if took > 1:
                shutil.copytree("merged", folder)
        last = [swept(folder, Shard(i, count)) for i, folder in enumerate(folders)]
        waits = any("wait for" in line for line in last)
        merge_records([folder for folder in folders if records(folder)], Path("merged"))
    assert took == rounds
    assert records(Path("merged")) == wanted
    assert dict(trained) == cells, "no cell ran twice"
    assert max(cells.values()) == 1


@pytest.mark.parametrize("last", ["ok", "failed", "diverged"])
@pytest.mark.usefixtures("in_folder")
def test_a_control_waits_until_its_baseline_was_tried_on_all_seeds(trained, last: str) -> None:
    """Folds of one seed alone may choose most often what those of all seeds do not.

    A seed whose trials failed has no choice, and is waited for no longer.
    """
    Path("mine.yaml").write_text(NESTED)
    plan = make_plan("mine.yaml", ["row=infonce"], None, False, None, Path("results"))
    for task in plan.tasks():
        if task.seed == 0:
            publish(Path("results"), task)
    found = make_plan("mine.yaml", ["row=permuted positives"], None, False, None, Path("results"))
    shards = [replace(found, shard=Shard(i, 2)) for i in range(2)]
    assert [one.tasks() for one in shards] == [[], []]
    assert [len(one.later_tasks()) for one in shards] == [2, 2]
    for task in plan.tasks():
        if task.seed == 1:
            publish(Path("results"), task, last)
    assert sum(len(one.tasks()) for one in shards) == 2
    assert [len(one.later_tasks()) for one in shards] == [0, 0]


def test_a_shard_says_what_it_has_and_how_the_sweep_goes_on(bench, trained) -> None:
    Path("mine.yaml").write_text(ONE)
    words = ["sweep", "mine.yaml"]
    said = bench(*words, "--shard", "1/3")[1].splitlines()
    own = sum(trained.values())
    assert said == [
        f"{own} cells: 0 done before, {own} now",
        f"shard 1/3: {own} of 10 cells; 8 later cells wait for trials of all shards: unite the "
        "shards' records with bench merge, give them to each shard and repeat its command",
    ]
    assert bench(*words)[1] == f"18 cells: {own} done before, {18 - own} now\n"
    last = bench(*words, "--shard", "1/3")[1].splitlines()[1]
    assert last.startswith("shard 1/3: ")
    assert last.endswith(" of 18 cells")


def test_each_cell_is_in_one_shard_and_shards_are_even() -> None:
    work = Experiment("graph", "motifs", LossSpec("infonce"), {})
    tasks = [Task(work, seed, "missing") for seed in range(times(3000, least=300))]
    for n in (1, 2, 7):
        found = [[task.seed for task in tasks if Shard(i, n).has(task)] for i in range(n)]
        assert sorted(seed for seeds in found for seed in seeds) == list(range(len(tasks)))
        assert min(map(len, found)) > len(tasks) / n / 2
    assert all(WHOLE_SWEEP.has(task) for task in tasks)


def test_a_cell_has_its_shard_on_every_machine() -> None:
    """By sha256 of its key alone: no release of Python and no order of a file changes it."""
    work = Experiment("graph", "motifs", LossSpec("infonce"), {})
    vars(work)["key"] = "0" * 64
    found = [[Shard(i, 5).has(Task(work, seed, "missing")) for i in range(5)] for seed in range(4)]
    assert [row.index(True) for row in found] == OWNERS


OWNERS = [0, 2, 2, 1]
