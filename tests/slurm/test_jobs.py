"""Jobs of a real Slurm, of one node, started for these tests by start.sh.

Skipped where Debian's slurm-wlm and munge are not installed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.records.store import read
from contrastbench.benchmarks.sweeps.slurm import BENCH

HERE = Path(__file__).parent
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/sbin"
missing = [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]
pytestmark = pytest.mark.skipif(
    bool(missing), reason=f"{', '.join(missing)} not here: apt-get install slurm-wlm munge"
)
SWEEP = """
seeds: 0-1
domains: {graph: {recipe: {epochs: 4, limit: 40, batch_size: 20, folds: 2}}}
losses: [infonce, waiting.py:Waiting]
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

    def sweep(self, *words: str, results: str = "results") -> str:
        # a check would train too, and the loss counts its calls
        common = ["sweep.yaml", "--device", "cpu", "--results", results, "--no-check"]
        return self.run(BENCH, "sweep", *common, *words)

    def submit(self, jobs: int, *words: str) -> str:
        said = self.sweep(*words, "--slurm", f"jobs={jobs}", "--slurm", "time=10")
        return said.split()[1]

    def wait_for(self, job: str) -> None:
        """Until it has ended; another job waits for it, and nobody asks again and again."""
        self.run("srun", f"--dependency=afterany:{job}", "true")

    def pipes(self) -> None:
        for name in ("begun", "again"):
            os.mkfifo(self.folder / name)

    def hear(self, name: str) -> str:
        """What is written into a pipe, or a file; a job that failed before would write nothing."""
        return subprocess.run(
            ["cat", name], cwd=self.folder, capture_output=True, text=True, timeout=400
        ).stdout

    def records(self, results: str = "results") -> dict[str, Any]:
        """What must be equal, however a cell was run."""
        return {
            path.name: (record["metrics"], record["details"]["loss_by_epoch"])
            for path in (self.folder / results).glob("runs/*/*/*/*.json")
            for record in [read(path)]
        }

    def logs(self) -> str:
        return "".join(path.read_text() for path in self.folder.glob("results/slurm/*.log"))


@pytest.fixture
def place(cluster: dict[str, str], tmp_path: Path) -> Place:
    return Place(tmp_path, cluster)


def test_jobs_fill_the_records_that_processes_fill(place: Place) -> None:
    job = place.submit(2)
    place.sweep("--jobs", "2", results="others")
    place.wait_for(job)
    assert len(place.records()) == 4
    assert place.records() == place.records("others")
    for loss in ("infonce", "waiting.py:Waiting"):
        assert f"graph motifs {loss}, seed 1: ok in" in place.logs()
    assert sorted(path.name for path in place.folder.glob("results/slurm/*")) == [
        f"{job}_0.log",
        f"{job}_1.log",
    ]


@pytest.mark.parametrize(
    "asked", [["scancel", "--signal=TERM"], ["scontrol", "requeue"]], ids=["TERM", "requeue"]
)
def test_a_job_that_is_to_give_way_comes_again_and_goes_on(asked: list[str], place: Place) -> None:
    """With the numbers it would have had, and no step twice."""
    place.pipes()
    only = ["--only", "loss=waiting.py:Waiting", "--seeds", "0"]
    job = place.submit(1, *only)
    first = place.hear("begun")
    place.run(*asked, first)
    assert place.hear("again") == first
    place.wait_for(job)
    calls = place.hear("calls")
    for name in ("begun", "again", "calls"):
        (place.folder / name).unlink()
    place.sweep(*only, results="others")
    assert len(place.records()) == 1
    assert place.records() == place.records("others")
    assert calls == place.hear("calls")
    assert not list(place.folder.rglob("*.safetensors"))


def test_the_last_cell_of_a_job_that_is_killed_is_finished_by_another(place: Place) -> None:
    """Of two jobs by a printed script; the killed one does not come again."""
    place.pipes()
    settings = ["--slurm", "jobs=2", "--slurm", "time=10", "--slurm", "print=true"]
    script = place.sweep("--only", "loss=waiting.py:Waiting", "--seeds", "0", *settings)
    (place.folder / "script.sh").write_text(script)
    job = place.run("sbatch", "--parsable", "script.sh").strip()
    first = place.hear("begun")
    place.run("scancel", "--signal=KILL", "--full", first)
    assert place.hear("again") != first
    place.wait_for(job)
    assert len(place.records()) == 1
    assert not list(place.folder.rglob("*.lock"))


@pytest.mark.parametrize(
    ("setting", "why"),
    [("partition=none", "Invalid partition"), ("partitoin=main", "unrecognized option")],
)
def test_what_sbatch_refuses_is_one_line(place: Place, setting: str, why: str) -> None:
    words = [BENCH, "sweep", "sweep.yaml", "--slurm", setting]
    done = subprocess.run(
        words, cwd=place.folder, env=place.environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("bench: --slurm: sbatch: ")
    assert why in done.stderr
