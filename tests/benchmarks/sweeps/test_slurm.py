"""Scripts for sbatch, by a stand-in for it; a real one has them in tests/slurm."""

import sys
from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps.slurm import BENCH

WORDS = ["sweep", "smoke", "--tiny", "--only", "loss=infonce"]


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program in sbatch's place that keeps its input and does as it is told."""

    def install(body: str) -> Path:
        program = tmp_path / "bin" / "sbatch"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncat > {tmp_path}/script\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return tmp_path / "script"

    return install


def test_a_job_runs_the_same_command_and_the_next_step_is_said(bench, sbatch) -> None:
    script = sbatch("echo '17;cluster'")
    settings = ["--slurm", "jobs=3", "--slurm=gpus_per_node=a100:1", "--slurm", "time=1:30:00"]
    code, said, _ = bench(*WORDS, "--jobs", "2", *settings, "--slurm", "comment=two words")
    assert code == 0
    assert said.splitlines() == [
        "job 17 is submitted; its logs: results/slurm/17_*.log",
        "next: squeue --job=17; then bench plan smoke says what is left,",
        "and this same command, with --slurm or without, goes on with it",
    ]
    lines = script.read_text().splitlines()
    assert lines[1:11] == [
        "#SBATCH --job-name=sweep-smoke",
        "#SBATCH --array=0-2",
        "#SBATCH --cpus-per-task=2",
        f"#SBATCH --output={Path.cwd()}/results/slurm/%A_%a.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=TERM@90",
        "#SBATCH --requeue",
        "#SBATCH --gpus-per-node=a100:1",
        "#SBATCH --time=1:30:00",
        "#SBATCH --comment='two words'",
    ]
    (command,) = [line for line in lines if line.startswith("srun")]
    own = "sweep smoke --tiny --only loss=infonce --jobs 2"
    assert command == f'srun --cpus-per-task="$SLURM_CPUS_PER_TASK" {BENCH} {own}'
    assert Path("results", "slurm").is_dir(), "sbatch makes no folder for its logs"


def test_printing_submits_nothing(bench, sbatch) -> None:
    script = sbatch("echo 17")
    code, said, _ = bench(*WORDS, "--slurm", "print=true")
    assert code == 0
    assert said.startswith("#!/bin/bash\n#SBATCH --job-name=sweep-smoke\n")
    assert "--time" not in said, "the cluster's own limit holds unless another is asked for"
    assert not script.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["jobs=x"], "--slurm jobs=x: give a whole number above zero"),
        (["jobs=0"], "--slurm jobs=0: give a whole number above zero"),
        (["jobs=-1"], "--slurm jobs=-1: give a whole number above zero"),
        (["jobs"], "--slurm 'jobs': give KEY=VALUE"),
        (["print=yes"], "--slurm print=yes: give true or false"),
        (["a b=1"], "--slurm a b: give jobs, print or an option of sbatch, such as time=600"),
        (["account=x"], "--slurm: sbatch: error: no such account sbatch: error: sorry"),
    ],
)
def test_what_is_wrong_is_one_line(bench, sbatch, settings: list[str], message: str) -> None:
    sbatch("echo 'sbatch: error: no such account\nsbatch: error: sorry' >&2; exit 1")
    words = [word for pair in settings for word in ("--slurm", pair)]
    code, said, complaint = bench(*WORDS, *words)
    assert (code, said, complaint) == (2, "", f"bench: {message}\n")


def test_jobs_per_device_asks_for_the_cores(bench, sbatch) -> None:
    script = sbatch("echo 17")
    words = [*WORDS, "--jobs-per-device", "2", "--slurm", "gpus_per_node=4"]
    code, _, complaint = bench(*words)
    assert (code, "give --slurm cpus_per_task=N" in complaint) == (2, True)
    assert bench(*words, "--slurm", "cpus_per_task=16")[0] == 0
    assert "#SBATCH --cpus-per-task=16" in script.read_text()


def test_without_sbatch_the_way_out_is_named(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    code, _, complaint = bench(*WORDS, "--slurm", "jobs=2")
    assert (code, complaint.count("\n")) == (2, 1)
    assert "give --slurm print=true and take the script there" in complaint


def test_the_command_is_that_of_this_python() -> None:
    assert Path(BENCH).parent == Path(sys.executable).parent
    assert Path(BENCH).exists()
