"""The workflows of submissions, and of a repository with a loss."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import stub_domain
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.running import runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission.loss_files import read_declaration
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.losses.laws import check_loss

WORKFLOW = Path(__file__).parents[3] / ".github" / "workflows" / "submission.yml"
BENCH = """#!/bin/bash
echo "bench $*" >> called
echo "## verdict"
[[ $2 != *forged* ]]
"""


def steps() -> list[dict[str, Any]]:
    return list(yaml.safe_load(WORKFLOW.read_text())["jobs"]["verify"]["steps"])


@pytest.mark.parametrize(
    ("theirs", "code"), [(["good"], 0), (["forged"], 1), (["forged", "good"], 1)]
)
def test_each_new_bundle_is_verified(tmp_path: Path, theirs: list[str], code: int) -> None:
    (script,) = [step["run"] for step in steps() if step.get("shell")]
    for folder in ("ours/submissions", "theirs/submissions"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "old.zip").write_text("there before")
    for name in theirs:
        (tmp_path / "theirs/submissions" / f"{name} one.zip").write_text(name)
    (tmp_path / "bench").write_text(BENCH)
    (tmp_path / "bench").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    given = {"PATH": path, "GITHUB_STEP_SUMMARY": "summary"}
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "called").read_text().splitlines() == [
        f"bench verify theirs/submissions/{name} one.zip --trust --keep kept" for name in theirs
    ]
    assert (tmp_path / "summary").read_text() == "## verdict\n" * len(theirs)


def test_a_strangers_code_meets_no_secret_and_no_token_that_writes() -> None:
    text = WORKFLOW.read_text()
    workflow = yaml.safe_load(text)
    assert set(workflow[True]) == {"pull_request"}, "pull_request_target would have secrets"
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets" not in text.replace("no secrets", "")
    checkouts = [step["with"] for step in steps() if "checkout" in step.get("uses", "")]
    assert all(one["persist-credentials"] is False for one in checkouts)
    assert [one["path"] for one in checkouts if "ref" in one] == ["ours"]
    assert [step["run"] for step in steps() if "pip install" in step.get("run", "")] == [
        'pip install "./ours[image,standard]"'
    ]


EXAMPLE = Path(__file__).parents[3] / "examples" / "loss-repository"
ITS_WORKFLOW = EXAMPLE / ".github" / "workflows" / "loss.yml"


@pytest.fixture
def copied(tmp_path: Path, bench):
    """`bench` in a copy of the repository."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    return bench


def commands() -> list[list[str]]:
    steps = yaml.safe_load(ITS_WORKFLOW.read_text())["jobs"]["loss"]["steps"]
    lines = [step["run"] for step in steps if step.get("run", "").startswith("bench ")]
    return [shlex.split(line.partition("|")[0])[1:] for line in lines]


def test_the_loss_passes_the_check_of_its_workflow(copied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_loss, "__defaults__", (range(1),))  # seeds
    check, sweep, compare = commands()
    assert (sweep[0], compare[0]) == ("sweep", "compare")
    code, out, err = copied(*check)
    assert code == 0, out + err


def test_the_comparison_of_its_workflow_begins_with_the_loss(
    copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells take milliseconds here: their numbers are not what is tested."""
    _, sweep, compare = commands()
    get_command(app).commands["sweep"].make_context("sweep", sweep[1:])
    stub_domain.install(monkeypatch)
    for task in make_plan(sweep[1], [], None, False, None, Path("results")).tasks():
        runner.run_cell(task.experiment, task.seed, Options(Path("results"), device="cpu"))
    code, out, err = copied(*compare)
    assert code == 0, err
    assert out.startswith("mine.py:Mine")
    assert "\n| mine.py:Mine | " in out, "Markdown for the summary of the job"


def test_its_page_shows_what_its_workflow_runs_and_how_a_loss_is_submitted() -> None:
    shown = re.findall(r"^bench (.+)$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    for words in commands():
        assert shlex.join(words) in shown
    for line in shown:
        name, *rest = shlex.split(line)
        get_command(app).commands[name].make_context(name, list(rest))
    assert read_declaration(EXAMPLE / "mine.yaml").licence == "MIT"
