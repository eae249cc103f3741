"""The recipes of examples/clusters: each is what its tool reads, and its `bench` lines are valid.

Shell parts are run with programs in the place of `bench` and of the cluster's commands. Parsers of
the tools are used where they are installed: kubernetes-validate, skypilot, htcondor and
dockerfile-parse of PyPI, and Debian's slurm-wlm in tests/slurm.
"""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.sweeps.plan import parse_shard

FOLDER = Path(__file__).parents[3] / "examples" / "clusters"
SHARDS = 4
STUB = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word" >> "$CALLS"; done
echo "--- $(basename "$0")" >> "$CALLS"
"""
# what a program in the place of another one does after it has noted its words
STANDS_IN = {
    "bench": 'mkdir -p "$HOME/shard-0"; exit "${BENCH_ENDS:-0}"',
    "srun": 'shift; exec "$@"',
    "apptainer": 'while [ "$1" != bench ]; do shift; done; exec "$@"',
    "scontrol": "",
    "qsub": "",
}
Calls = list[list[str]]
Shell = Callable[..., tuple[int, Calls]]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run a script with these programs, in a copy of the folder: its exit code and all calls."""
    programs, work, calls = tmp_path / "programs", tmp_path / "work", tmp_path / "calls"
    programs.mkdir()
    shutil.copytree(FOLDER, work)
    for name, body in STANDS_IN.items():
        (programs / name).write_text(STUB + body + "\n")
        (programs / name).chmod(0o755)

    def run(text: str, **variables: str) -> tuple[int, Calls]:
        calls.write_text("")
        environment = {
            **os.environ,
            "PATH": f"{programs}:/usr/bin:/bin",
            "CALLS": str(calls),
            "HOME": str(tmp_path),
            **variables,
        }
        words = ["bash", "-c", text]
        done = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)
        assert "syntax error" not in done.stderr
        found = re.split(r"--- (\w+)\n", calls.read_text())
        return done.returncode, [
            [name, *words.splitlines()]
            for words, name in zip(found[::2], found[1::2], strict=False)
        ]

    return run


def benches(calls: Calls) -> Calls:
    """Return the words of `bench`, after reading them as it does."""
    found = [words for name, *words in calls if name == "bench"]
    for name, *rest in found:
        get_command(app).commands[name].make_context(name, list(rest))
    return found


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def lines(name: str) -> str:
    return (FOLDER / name).read_text()


def test_every_recipe_has_a_test_and_a_line_in_the_page() -> None:
    page = (FOLDER.parents[1] / "docs" / "machines.md").read_text()
    own = Path(__file__).read_text()
    for path in FOLDER.iterdir():
        assert f"`{path.name}`" in page
        assert f'"{path.name}"' in own


def test_slurm_submits_each_kind_of_cell(shell) -> None:
    """The lines name what `my.yaml` has, and together all of it."""
    code, calls = shell(lines("slurm.sh"))
    plan, *sweeps = benches(calls)
    assert (code, plan[0]) == (0, "plan")
    domains = yaml.safe_load(lines("my.yaml"))["domains"]
    assert {option(sweep, "--only") for sweep in sweeps} == {f"domain={name}" for name in domains}
    assert all("--slurm" in sweep for sweep in sweeps)


@pytest.mark.parametrize(
    ("ends", "restarts", "again"),
    [("0", "0", 0), ("1", "0", 0), ("143", "3", 1), ("143", "100", 0)],
)
def test_a_job_of_slurm_with_apptainer_is_queued_again(shell, ends, restarts, again) -> None:
    variables = {
        "SLURM_CPUS_PER_TASK": "4",
        "SLURM_ARRAY_JOB_ID": "17",
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_RESTART_COUNT": restarts,
        "BENCH_ENDS": ends,
    }
    code, calls = shell(lines("slurm-apptainer.sh"), **variables)
    assert code == int(ends)
    assert [words[0] for words in benches(calls)] == ["sweep"]
    assert [words for words in calls if words[0] == "scontrol"] == (
        [["scontrol", "requeue", "17_2"]] * again
    )


@pytest.mark.parametrize(
    ("ends", "index", "again"), [("0", "0", 0), ("143", "0", 1), ("143", "1", 0)]
)
def test_an_array_of_pbs_is_submitted_again(shell, ends: str, index: str, again: int) -> None:
    variables = {"PBS_O_WORKDIR": ".", "PBS_ARRAY_INDEX": index, "BENCH_ENDS": ends}
    code, calls = shell(lines("pbs.sh"), **variables)
    assert code == int(ends)
    assert [words[0] for words in benches(calls)] == ["sweep"]
    assert [words for words in calls if words[0] == "qsub"] == [["qsub", "pbs.sh"]] * again


def test_pods_of_kubernetes_have_each_shard_once(shell) -> None:
    job = yaml.safe_load(lines("kubernetes.yaml"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    words = [*container["command"], *container["args"]]
    text = shlex.join(words)
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == SHARDS
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}
    calls = [shell(text, JOB_COMPLETION_INDEX=str(i))[1] for i in range(SHARDS)]
    assert_shards([words for some in calls for words in benches(some)])


def test_kubernetes_takes_the_job() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = yaml.safe_load(lines("kubernetes.yaml"))
    kubernetes_validate.validate(job, "1.31", strict=True)


def test_nodes_of_skypilot_have_each_shard_once(shell) -> None:
    task = yaml.safe_load(lines("skypilot.yaml"))
    assert task["num_nodes"] == SHARDS
    count = {"SKYPILOT_NUM_NODES": str(task["num_nodes"])}
    calls = [shell(task["run"], SKYPILOT_NODE_RANK=str(i), **count)[1] for i in range(SHARDS)]
    assert_shards([words for some in calls for words in benches(some)])
    assert shell(task["run"], SKYPILOT_NODE_RANK="0", BENCH_ENDS="143", **count)[0] == 143


def test_skypilot_takes_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    sky = pytest.importorskip("sky")
    monkeypatch.chdir(FOLDER)
    assert sky.Task.from_yaml(str(FOLDER / "skypilot.yaml")).num_nodes == SHARDS


def test_jobs_of_htcondor_have_each_shard_once() -> None:
    values = dict(re.findall(r"^(\w+) = (.*)$", lines("htcondor.sub"), re.MULTILINE))
    assert lines("htcondor.sub").endswith("\nqueue $(shards)\n")
    assert values["shards"] == str(SHARDS)
    text = values["arguments"].strip('"').replace("$(shards)", values["shards"])
    calls = [["bench", *text.replace("$(Process)", str(i)).split()] for i in range(SHARDS)]
    found = benches(calls)
    assert_shards(found)
    assert option(found[0], "--results") == values["transfer_output_files"].replace(
        "$(Process)", "0"
    )
    assert values["transfer_input_files"] == found[0][1]


def test_htcondor_takes_the_submit_description() -> None:
    htcondor = pytest.importorskip("htcondor2")
    submit = htcondor.Submit(lines("htcondor.sub"))
    assert submit.getQArgs() == "$(shards)"
    assert "--shard 0/4 " in submit.expand("arguments")


def assert_shards(found: Calls) -> None:
    shards = [parse_shard(option(words, "--shard")) for words in found]
    assert [(one.index, one.count) for one in shards] == [(i, SHARDS) for i in range(SHARDS)]
    assert len({option(words, "--results") for words in found}) == SHARDS


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", lines("Containerfile"), flags=re.MULTILINE)
    joined = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in joined if line]  # type: ignore[misc]


def test_the_container_builds_the_wheel_and_runs_bench() -> None:
    found = instructions()
    assert [name for name, _ in found].count("FROM") == 2
    assert all(re.search(r":[\w.-]+", image) for name, image in found if name == "FROM")
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["bench"]
    extras = re.findall(r"whl\)\[([\w,]+)\]", str(found))
    project = (FOLDER.parents[1] / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in project for extra in extras[0].split(","))
    for name, text in found:
        if name == "RUN":
            assert subprocess.run(["bash", "-nc", text]).returncode == 0


@pytest.mark.usefixtures("offline")
def test_the_container_needs_no_network(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of its comment runs with its environment and an empty folder of data."""
    for pair in dict(instructions())["ENV"].split():
        name, _, value = pair.partition("=")
        monkeypatch.setenv(name, str(tmp_path) if value == "/data" else value)
    (line,) = re.findall(r"--network none .* contrastbench (.*)", lines("Containerfile"))
    assert bench(*line.split(), "--tiny", "--data-root", str(tmp_path))[0] == 0


def test_the_containerfile_is_parsed() -> None:
    parse = pytest.importorskip("dockerfile_parse")
    content = io.BytesIO(lines("Containerfile").encode())
    found = parse.DockerfileParser(fileobj=content).structure
    known = {"COMMENT", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "ENTRYPOINT"}
    assert {one["instruction"] for one in found} == known
