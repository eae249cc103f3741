"""Jobs of a real Slurm, of one node, started for these tests by start.sh.

Skipped where Debian's slurm-wlm and munge are not installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import read_record
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.losses import LossSpec

HERE = Path(__file__).parent
BENCH = (sys.executable, "-m", "contrastbench")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/sbin"
missing = [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]
pytestmark = pytest.mark.skipif(
    bool(missing), reason=f"{', '.join(missing)} not here: apt-get install slurm-wlm munge"
)
RECIPE = {"epochs": 4, "limit": 40, "batch_size": 20, "folds": 2}
STEPS = 8
LOSS = "waiting.py:Waiting"
SWEEP = f"""
seeds: 0-1
domains: {{graph: {{datasets: [motifs], recipe: {RECIPE}}}}}
losses: [{LOSS}]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which jobs can be submitted."""
    folder = tmp_path_factory.mktemp("slurm")
    words = ["bash", str(HERE / "start.sh"), str(folder)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        process.communicate()


class Place:
    """A folder with a sweep file and the loss that waits, and Slurm's commands in it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {**environment, "WAITING": str(folder)}
        shutil.copy(HERE / "waiting.py", folder)
        (folder / "sweep.yaml").write_text(SWEEP)

    def run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def sweep(self, *words: str) -> str:
        # a check would train too, and the loss counts its calls
        common = ["sweep.yaml", "--device", "cpu", "--results", "results"]
        return self.run(*BENCH, "sweep", *common, *words, "--slurm", "time=10")

    def wait_for(self, job: str) -> None:
        """Until it has ended; another job waits for it, and nobody asks again and again."""
        self.run("srun", f"--dependency=afterany:{job}", "true")

    def wait_in(self, *calls: int) -> None:
        """The loss shall wait there; before jobs are submitted."""
        (self.folder / "waits").write_text(" ".join(map(str, calls)))
        os.mkfifo(self.folder / "begun")

    def waiting(self) -> str:
        """The job that waits; one that failed before would say nothing."""
        return subprocess.run(
            ["cat", "begun"], cwd=self.folder, capture_output=True, text=True, timeout=400
        ).stdout

    def records(self) -> dict[int, Any]:
        """By seed, what must be equal however a cell was run."""
        paths = (self.folder / "results").glob("runs/*/*/*/*.json")
        return {record["seed"]: same(record) for record in map(read_record, paths)}

    def log(self, job: str) -> str:
        return (self.folder / f"results/slurm/{job}_0_log.out").read_text()


def same(record: Mapping[str, Any]) -> tuple[Any, Any]:
    return record["metrics"], record["details"]["loss_by_epoch"]


def alone(seed: int, results: Path) -> tuple[Any, Any]:
    """The same of a training here."""
    experiment = Experiment("graph", "motifs", LossSpec(f"{HERE}/{LOSS}"), RECIPE)
    return same(run_cell(experiment, seed, Options(results, device="cpu"))[0])


@pytest.fixture
def place(cluster: dict[str, str], tmp_path: Path) -> Place:
    return Place(tmp_path, cluster)


def test_a_job_that_is_to_give_way_comes_again_and_goes_on(place: Place, tmp_path: Path) -> None:
    """After the signal of the time limit and a requeue: the same numbers, and no step twice."""
    place.wait_in(3, 6)
    job = place.sweep("--seeds", "0").split()[1]
    first = place.waiting()
    place.run("scancel", "--signal=USR2", first)
    assert place.waiting() == first
    place.run("scontrol", "requeue", first)
    place.wait_for(job)
    assert place.records() == {0: alone(0, tmp_path / "alone")}
    assert (place.folder / "calls").stat().st_size == STEPS
    assert not list(place.folder.rglob("*.safetensors"))


def test_slurm_takes_the_recipe_with_apptainer(place: Place) -> None:
    """The cluster of one node has no GPU and little memory, so the test asks for less."""
    recipe = HERE.parents[1] / "examples" / "clusters" / "slurm-apptainer.sh"
    less = ["--gpus-per-node=0", "--mem=0", "--time=10"]
    place.run("sbatch", "--test-only", *less, str(recipe))
    job = place.run("sbatch", "--parsable", "--hold", *less, str(recipe)).strip()
    about = place.run("scontrol", "show", "job", job)
    place.run("scancel", job)
    for setting in ("JobName=sweep-my", "ArrayTaskId=0-3", "Requeue=1", "NumCPUs=4"):
        assert setting in about


def test_what_jobs_share_is_finished_by_those_that_are_not_killed(
    place: Place, tmp_path: Path
) -> None:
    """A job finishes what it shares with a killed job that does not return."""
    place.wait_in(3)
    job = place.sweep("--slurm", "jobs=2").split()[1]
    killed = place.waiting()
    place.run("scancel", "--signal=KILL", "--full", killed)
    place.wait_for(job)
    assert place.records() == {seed: alone(seed, tmp_path / "alone") for seed in (0, 1)}
    other = f"{job}_{1 - int(killed[-1])}"
    assert "2 cells" not in place.log(killed)
    assert f"graph motifs {LOSS}, seed 1: ok in" in place.log(other)
    assert not list(place.folder.rglob("*.lock"))


@pytest.mark.parametrize(
    ("setting", "why"),
    [("partition=none", "Invalid partition"), ("partitoin=main", "Unavailable parameter")],
)
def test_what_sbatch_refuses_is_one_line(place: Place, setting: str, why: str) -> None:
    words = [*BENCH, "sweep", "smoke", "--slurm", "time=10", "--slurm", setting]
    done = subprocess.run(
        words, cwd=place.folder, env=place.environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("bench: --slurm: ")
    assert why in done.stderr
