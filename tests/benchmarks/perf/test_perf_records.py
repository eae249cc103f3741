"""`bench perf records`: no cell is lost and none runs twice, also where processes are killed."""

from collections import deque
from contextlib import nullcontext
from pathlib import Path

import pytest

from contrastbench.benchmarks.perf import records
from contrastbench.benchmarks.perf.records import (
    IN_TRAINING,
    Claim,
    Fleet,
    duplicated_cells,
    in_turns,
    sweep_plan,
    worker,
    write_sweep,
)
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.claims import claim
from contrastbench.benchmarks.sweeps.plan import Plan
from contrastbench.errors import UserError


def plan_in(folder: Path) -> Plan:
    return sweep_plan(write_sweep(folder, records.EXPERIMENTS), folder)


@pytest.mark.parametrize("sharded", [False, True])
def test_no_cell_is_lost_or_runs_twice_though_processes_are_killed(
    sharded: bool, tmp_path: Path
) -> None:
    plan = plan_in(tmp_path)
    ran = Fleet(tmp_path, workers=6, processes=2, dying=2, sharded=sharded).run(plan.tasks())
    assert {task.state for task in plan.tasks()} == {"done"}
    assert (len(ran), duplicated_cells(ran)) == (records.EXPERIMENTS, 0)


def test_a_killed_process_leaves_claims_that_hold_nobody_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a successor the cell that it had claimed is missing.

    It dies in the turn after all six workers have claimed and finished a cell.
    """
    plan = plan_in(tmp_path)
    monkeypatch.setattr(Fleet, "process", alone(Fleet.process))
    monkeypatch.setattr(records.random, "randint", lambda *_: 13)
    Fleet(tmp_path, workers=6, processes=1, dying=1).run(plan.tasks())
    left = {path.stem for path in (tmp_path / "claims").iterdir()}
    missing = {task.name for task in plan.tasks() if task.state == "missing"}
    assert (len(left), len(missing)) == (1, records.EXPERIMENTS - 6)
    assert left <= missing


def alone(process: object) -> object:
    """Return a process whose successor does nothing."""
    return lambda fleet, part, dies: process(fleet, part, dies) if dies else None  # type: ignore[operator]


@pytest.mark.parametrize(("hold", "count"), [(claim, 0), (lambda *_: nullcontext(True), 12)])
def test_cells_run_twice_where_claims_hold_nobody_off(
    hold: Claim, count: int, tmp_path: Path
) -> None:
    """Two sweeps that take turns begin with the same cells."""
    part = Fleet(tmp_path, workers=2, processes=2).part(0, plan_in(tmp_path).tasks()[:12])
    sweeps = [worker(deque(part), hold) for _ in range(2)]
    ran = [turn for turn in in_turns(sweeps) if turn != IN_TRAINING]
    assert len({one.path for one in part if one.path.exists()}) == 12
    assert duplicated_cells(ran) == count


def test_a_worker_reads_its_own_record_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, verified = list[Path](), store.verified
    monkeypatch.setattr(store, "verified", lambda path: (read.append(path), verified(path))[1])
    tasks = [Task(plan_in(tmp_path).places[0].work, seed, "missing") for seed in range(9)]
    part = Fleet(tmp_path, workers=1, processes=1).part(0, tasks)
    ran = [turn for turn in worker(deque(part), claim) if turn != IN_TRAINING]
    assert len(ran) == len(part)
    assert read == [one.path for one in part]


def test_the_table_has_a_line_for_claims_and_one_for_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(records, "in_process", lambda *_: {"seconds": 1.0, "mib": 9.0, "done": 99})
    lines = list(records.report(["100", "4", "2"]))
    assert [line.split(" | ")[:7] for line in lines[2:]] == [
        ["| claims", "100", "4", "2", "2", "1", "0"],
        ["| --shard", "100", "4", "2", "2", "1", "0"],
    ]
    assert {line.count("|") for line in lines} == {lines[0].count("|")}


def test_the_planner_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    planned = records.in_process(write_sweep(tmp_path, records.EXPERIMENTS), tmp_path)
    assert planned["done"] == 0
    assert planned["mib"] > 1


@pytest.mark.parametrize("names", [["100"], ["150", "4", "2"], ["100", "4", "x"], ["0", "4", "2"]])
def test_wrong_numbers_are_one_line(names: list[str]) -> None:
    with pytest.raises(UserError, match="give the numbers of cells"):
        next(records.report(names))
