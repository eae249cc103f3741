"""Scripts for sbatch, by a stand-in for it; a real one has them in tests/slurm."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.store import read_record
from contrastbench.benchmarks.sweeps import queue
from contrastbench.benchmarks.sweeps.slurm import BENCH
from warm import python

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
        "next: bench plan smoke --tiny --only loss=infonce",
        "says why jobs wait and what is left; this same command, with --slurm or without,",
        "goes on with it",
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
    words = [*WORDS, "--jobs", "2/device", "--slurm", "gpus_per_node=4"]
    code, _, complaint = bench(*words)
    assert (code, "give --slurm cpus_per_task=N" in complaint) == (2, True)
    assert bench(*words, "--slurm", "cpus_per_task=16")[0] == 0
    assert "#SBATCH --cpus-per-task=16" in script.read_text()


NODES = ["--devices", "4", "--slurm", "print=true", "--slurm", "nodes=2"]


def test_nodes_share_each_cell_by_torchrun(bench, sbatch) -> None:
    sbatch("echo 17")
    code, said, _ = bench(*WORDS, *NODES)
    assert code == 0
    for line in ("nodes=2", "ntasks-per-node=1", "cpus-per-task=4", "signal=B:TERM@90"):
        assert f"#SBATCH --{line}\n" in said
    assert f"{sys.executable} -m torch.distributed.run --nproc-per-node=4 --max-restarts=3" in said
    assert f"-m contrastbench {shlex.join(WORDS)} &\n" in said
    refused = bench(*WORDS, *NODES, "--jobs", "2")[2]
    assert refused == "bench: --slurm nodes: the nodes share one cell at a time: leave --jobs out\n"
    refused = bench(*WORDS, "--slurm", "nodes=x")[2]
    assert refused == "bench: --slurm nodes=x: give a whole number above zero\n"


JOB = {
    "SLURM_CPUS_PER_TASK": "4",
    "SLURM_JOB_ID": "23",
    "SLURM_JOB_NODELIST": "node[1-2]",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_ARRAY_JOB_ID": "17",
    "SLURM_ARRAY_TASK_ID": "2",
}


@pytest.fixture
def job(bench, sbatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts the script of a job over nodes, with a program in srun's place."""

    def start(srun: str, *words: str) -> subprocess.Popen[str]:
        folder = sbatch("echo 17").parent / "bin"
        scontrol = f'case $1 in show) echo 127.0.0.1;; *) echo "$@" >> {tmp_path}/again;; esac'
        for name, body in (("srun", srun), ("scontrol", scontrol)):
            (folder / name).write_text(f"#!/bin/bash\n{body}\n")
            (folder / name).chmod(0o755)
        text = bench(*words, "--devices", "2", *NODES[2:])[1]
        for name, value in JOB.items():
            monkeypatch.setenv(name, value)
        return subprocess.Popen(["bash", "-c", text], stderr=subprocess.PIPE, text=True)

    return start


@pytest.mark.parametrize(("ends", "code", "again"), [(1, 143, True), (0, 0, False)])
def test_a_job_over_nodes_hands_the_signal_on_and_is_queued_again(
    job, ends: int, code: int, again: bool, tmp_path: Path
) -> None:
    """Unless its sweep was finished in the same moment."""
    os.mkfifo(tmp_path / "begun")
    begins = f"echo > {tmp_path}/begun"
    started = job(f"trap 'kill $!; exit {ends}' TERM; sleep infinity & {begins}; wait", *WORDS)
    (tmp_path / "begun").read_text()
    started.send_signal(signal.SIGTERM)
    started.communicate()
    assert started.returncode == code
    assert (tmp_path / "again").exists() == again
    if again:
        assert (tmp_path / "again").read_text() == "requeue 17_2\n"


@pytest.mark.slow
def test_the_nodes_of_a_job_run_the_sweep(
    job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_EXEC", python())
    cell = ["--only", "domain=graph", "--only", "loss=infonce", "--seeds", "0"]
    started = job('shift; exec "$@"', "sweep", "smoke", "--tiny", "--device=cpu", *cell)
    said = started.communicate()[1]
    assert started.returncode == 0, said
    records = list(map(read_record, tmp_path.glob("results/runs/*/*/*/*.json")))
    assert records
    assert all(len(record["environment"]["devices"]) == 2 for record in records)


def test_the_plan_that_is_named_is_of_the_same_cells(bench, sbatch) -> None:
    sbatch("echo 17")
    words = [
        *WORDS,
        "--seeds=0-3",
        "--results",
        "my results",
        "--device",
        "cpu",
        "--check",
        "never",
    ]
    said = bench(*words, "--jobs=2", "--tf32", "--slurm", "jobs=2")[1]
    plan = "bench plan smoke --tiny --only loss=infonce --seeds=0-3 --results 'my results'"
    assert f"next: {plan}\n" in said
    assert bench(*shlex.split(plan)[1:])[0] == 0


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program in squeue's place; a folder of logs says that jobs were submitted."""

    def install(body: str) -> Path:
        program = tmp_path / "bin" / "squeue"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{body}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        (tmp_path / "results" / "slurm").mkdir(parents=True)
        return tmp_path / "asked"

    return install


def test_a_plan_says_why_jobs_wait(bench, squeue) -> None:
    asked = squeue(
        "echo '17_0|RUNNING|None\n17_1|RUNNING|None\n17_[2-7]|PENDING|Resources\n"
        "18_[0]|PENDING|PartitionTimeLimit\n19_[0]|PENDING|Resources\n"
        "20_0|PENDING|QOSMaxJobsPerUserLimit\n21|PENDING|SomethingNew'"
    )
    code, said, _ = bench("plan", *WORDS[1:])
    assert code == 0
    start = said.splitlines().index("jobs in the queue: 2 running, 5 pending")
    assert said.splitlines()[start + 1 :] == [
        "  17_[2-7], 19_[0]: Resources: the nodes are busy; they start by themselves",
        "  18_[0]: PartitionTimeLimit: they ask for more time than sinfo shows and never start: "
        "scancel them, give a smaller --slurm time=",
        "  20_0: QOSMaxJobsPerUserLimit: you run as much as your QOS allows; "
        "they start when yours end",
        "  21: SomethingNew: see JOB REASON CODES in man squeue",
    ]
    assert asked.read_text().startswith("--me --noheader --name=sweep-smoke ")


@pytest.mark.parametrize(
    "body", ["exit 1", "true", "echo nonsense", "echo '1|RUNNING|None'; exit 1"]
)
def test_a_queue_that_does_not_answer_is_no_part_of_a_plan(bench, squeue, body: str) -> None:
    squeue(body)
    code, said, complaint = bench("plan", *WORDS[1:])
    assert (code, complaint, "jobs in the queue" in said) == (0, "", False)


def test_nobody_asks_for_the_queue_where_no_job_was_submitted(bench, squeue) -> None:
    asked = squeue("true")
    (asked.parent / "results" / "slurm").rmdir()
    assert bench("plan", *WORDS[1:])[0] == 0
    assert not asked.exists()


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("None", "not looked"),
        ("Priority", "come first"),
        ("PartitionConfig", "partition"),
        ("PartitionNodeLimit", "partition"),
        ("QOSGrpGRES", "account"),
        ("AssocMaxJobsLimit", "account"),
        ("AssocGrpCPUMinutesLimit", "account"),
        ("ReqNodeNotAvail, UnavailableNodes:vm", "down"),
        ("BadConstraints", "no node"),
        ("BeginTime", "queued again"),
        ("Dependency", "another job"),
        ("DependencyNeverSatisfied", "never"),
        ("JobHeldUser", "scontrol release"),
        ("JobHeldAdmin", "staff"),
        ("JobArrayTaskLimit", "array"),
        ("InvalidQOS", "account"),
    ],
)
def test_common_reasons_are_explained(reason: str, word: str) -> None:
    assert word in queue.reason_help(reason)


def test_without_sbatch_the_way_out_is_named(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    code, _, complaint = bench(*WORDS, "--slurm", "jobs=2")
    assert (code, complaint.count("\n")) == (2, 1)
    assert "give --slurm print=true and take the script there" in complaint


def test_the_command_is_that_of_this_python() -> None:
    assert Path(BENCH).parent == Path(sys.executable).parent
    assert Path(BENCH).exists()
