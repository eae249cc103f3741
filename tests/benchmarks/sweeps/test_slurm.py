"""Jobs by submitit, with stand-ins for Slurm's programs; real ones have them in tests/slurm."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps import slurm

WORDS = ["sweep", "smoke", "--tiny", "--only", "loss=infonce"]
TIME = ["--slurm", "time=60"]
JOB = {
    "SLURM_JOB_ID": "23",
    "SLURM_JOB_NODELIST": "localhost",
    "SLURM_ARRAY_JOB_ID": "17",
    "SLURM_ARRAY_TASK_ID": "2",
    "SUBMITIT_EXECUTOR": "slurm",
}
Programs = Callable[..., Path]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Put programs in the place of Slurm's; sbatch keeps its script."""

    def install(**bodies: str) -> Path:
        given = {"srun": "true", "sbatch": "echo Submitted batch job 17", **bodies}
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, body in given.items():
            keep = f"cp $1 {tmp_path}/script\n" * (name == "sbatch")
            (folder / name).write_text(f"#!/bin/sh\n{keep}{body}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        return tmp_path / "script"

    return install


def test_jobs_run_the_same_command_and_the_next_step_is_said(
    bench, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, given = programs(), list[slurm.SlurmJob]()
    job = slurm.SlurmJob
    monkeypatch.setattr(slurm, "SlurmJob", lambda *about: given.append(job(*about)) or given[-1])
    settings = ["--slurm", "jobs=3", "--slurm=gpus_per_node=a100:1", "--slurm", "mem=4G"]
    shard = ["--shard", "1/2"]
    code, said, _ = bench(*WORDS, *shard, "--jobs", "2", *TIME, *settings, "--devices", "2")
    assert (code, said.splitlines()) == (
        0,
        [
            "job 17 is submitted; its logs: results/slurm/17_*.out",
            "this same command goes on with it, and bench plan counts what is left",
        ],
    )
    lines = script.read_text().splitlines()
    for line in (
        "--array=0-2%3",
        "--cpus-per-task=8",
        "--gpus-per-node=a100:1",
        "--job-name=sweep-smoke",
        "--mem=4G",
        f"--output={Path.cwd()}/results/slurm/%A_%a_0_log.out",
        "--signal=USR2@90",
        "--time=60",
    ):
        assert f"#SBATCH {line}" in lines
    assert any("srun" in line and "--cpus-per-task=8" in line for line in lines)
    assert given[0].words == [*WORDS, *shard, "--jobs", "2", "--devices", "2"]
    assert given[0].devices == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["jobs=x"], "--slurm jobs=x: give a whole number above zero"),
        (["jobs=0"], "--slurm jobs=0: give a whole number above zero"),
        (["jobs"], "--slurm 'jobs': give KEY=VALUE"),
        (["nodes=x"], "--slurm nodes=x: give a whole number above zero"),
        (["print=2"], "--slurm print=2: give true, which shows the script, or false"),
        (["a=1"], "--slurm: Unavailable parameter(s): ['a'] Valid parameters are:"),
        (["account=x"], "--slurm: sbatch: error: no such account sbatch: error: sorry"),
        (["--jobs=2/device"], "--jobs N/device with --slurm: give --slurm cpus_per_task=N"),
        (["--jobs=2", "nodes=2"], "--slurm nodes: the nodes share one cell at a time: leave"),
        (["jobs=2"], "--slurm time=: give a whole number above zero of minutes"),
    ],
)
def test_what_is_wrong_is_one_line(
    bench, programs: Programs, settings: list[str], message: str
) -> None:
    programs(sbatch="echo 'sbatch: error: no such account\nsbatch: error: sorry' >&2; exit 1")
    words = [one if one.startswith("-") else f"--slurm={one}" for one in settings]
    time = [] if "time=:" in message else TIME
    code, said, complaint = bench(*WORDS, *time, *words)
    assert (code, said, complaint.count("\n")) == (2, "", 1)
    assert complaint.startswith(f"bench: {message}")


def test_without_slurm_it_says_so(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    code, _, complaint = bench(*WORDS, *TIME)
    assert (code, complaint.count("\n"), "are you indeed on a slurm" in complaint) == (2, 1, True)


NO_CARD = "the partition's name says GPU, and none is asked for: --slurm gpus_per_node=1\n"


@pytest.mark.parametrize(
    ("asked", "cores", "hint"),
    [
        ([], 1, ""),
        (["gres=gpu:2"], 16, ""),
        (["gres=gpu"], 8, ""),
        (["partition=gpu"], 1, NO_CARD),
        (["partition=gpu", "gres=gpu:2"], 16, ""),
    ],
)
def test_the_script_is_shown_without_slurm_and_nothing_is_written(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], cores: int, hint: str
) -> None:
    monkeypatch.setenv("PATH", "")
    words = [f"--slurm={one}" for one in ("print=true", "jobs=3", "mem=4G", *asked)]
    code, script, said = bench(*WORDS, *TIME, *words, "--results", str(tmp_path / "r"))
    assert (code, said, (tmp_path / "r").exists()) == (0, hint, False)
    lines = ["--array=0-2%3", "--mem=4G", "--time=60", f"--cpus-per-task={cores}"]
    assert {f"#SBATCH {line}" for line in lines} <= set(script.splitlines())


PROCESS = """
import sys
from contrastbench.benchmarks.sweeps import slurm
from submitit.core.submission import process_job
slurm.BENCH = sys.argv[2:] or slurm.BENCH
process_job(sys.argv[1])
"""


@pytest.fixture
def job(bench, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Start the third of three submitted jobs as Slurm would, with another command than `bench`."""

    def start(words: list[str], *command: str) -> subprocess.Popen[str]:
        programs(scontrol=f'echo "$@" >> {tmp_path}/again')
        assert bench(*words, *TIME, "--slurm", "jobs=3")[0] == 0
        for name, value in JOB.items():
            monkeypatch.setenv(name, value)
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS, f"{tmp_path}/results/slurm", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.mark.parametrize(("ends", "again"), [(143, "requeue 17_2\n"), (0, "")])
def test_a_job_at_its_time_limit_is_queued_again(
    job, ends: int, again: str, tmp_path: Path
) -> None:
    """Unless its sweep was finished in the same moment; each process gets the signal."""
    os.mkfifo(tmp_path / "begun")
    wait = f"trap 'kill $!; exit {ends}' TERM; sleep infinity & echo $$ > {tmp_path}/begun; wait"
    started = job(WORDS, "bash", "-c", wait)
    sweep = int((tmp_path / "begun").read_text())
    os.kill(sweep, signal.SIGUSR2)
    started.send_signal(signal.SIGUSR2)
    said = started.communicate()[0]
    assert "Caught signal SIGUSR2" in said
    found = tmp_path / "again"
    assert (found.read_text() if found.exists() else "") == again


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_job_ends_with_the_code_of_its_sweep(job, code: int) -> None:
    started = job(WORDS, "bash", "-c", f"exit {code}")
    started.communicate()
    assert started.returncode == code


def test_nodes_share_each_cell_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**JOB, "SLURM_JOB_NUM_NODES": "2"}.items():
        monkeypatch.setenv(name, value)
    words = slurm.command([*WORDS, "--devices", "4"], 4)
    assert words[:3] == [sys.executable, "-m", "torch.distributed.run"]
    assert {"--nnodes=2", "--nproc-per-node=4", "--max-restarts=3"} <= set(words)
    assert words[-len(WORDS) - 2 :] == ["-m", "contrastbench", *WORDS]
