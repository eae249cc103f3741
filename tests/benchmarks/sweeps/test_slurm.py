"""Slurm jobs, run by submitit without Slurm."""

import json
import sys
from pathlib import Path

import pytest

from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import plan, slurm
from contrastbench.benchmarks.sweeps import sweep as sweep_module
from contrastbench.losses import UserError

pytest.importorskip("submitit")

WORKER = f"""
import json, sys
print({json.dumps({"status": "ready"})!r}, flush=True)
for line in sys.stdin:
    print(json.dumps(dict(status="failed", error="seed %d" % json.loads(line)["seed"])), flush=True)
"""


@pytest.fixture
def asked(tmp_path: Path) -> plan.Plan:
    return plan.make_plan("smoke", ["loss=infonce", "domain=graph"], "0-1", True, None, tmp_path)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # submitit's
def test_each_job_runs_the_sweep(
    asked: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "COMMAND", [sys.executable, "-c", WORKER])
    jobs = slurm.submit(asked, Options(tmp_path), 1, {"jobs": 2, "timeout_min": 5}, cluster="debug")
    assert [job.result() for job in jobs] == 2 * [
        [
            "graph motifs infonce, seed 0: failed: seed 0",
            "graph motifs infonce, seed 1: failed: seed 1",
            "2 cells: 0 done before, 0 now, 2 without a result",
        ]
    ]


@pytest.mark.parametrize(
    ("settings", "cluster", "message"),
    [
        ({"partitoin": "gpu"}, "local", "--slurm: Parameter 'partitoin. need to be prefixed"),
        ({}, "slurm", "--slurm: Could not detect"),
        ({"jobs": "x"}, "local", "--slurm jobs=x: give a whole number above zero"),
        ({"jobs": 0}, "local", "--slurm jobs=0: give a whole number above zero"),
        ({"jobs": -1}, "local", "--slurm jobs=-1: give a whole number above zero"),
        ({"timeout_min": "x"}, "local", "--slurm timeout_min=x: give a whole number above zero"),
    ],
)
def test_what_is_wrong_is_one_line(
    asked, tmp_path: Path, settings: dict, cluster: str, message: str, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=message) as error:
        slurm.submit(asked, Options(tmp_path), 1, settings, cluster)
    assert "\n" not in str(error.value)


def test_without_submitit_the_fix_is_named(
    asked: plan.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(UserError, match=r'pip install "contrastbench\[slurm\]"'):
        slurm.submit(asked, Options(tmp_path), 1, {})
