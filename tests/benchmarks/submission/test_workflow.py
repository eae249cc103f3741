"""The workflow that verifies bundles of a pull request: its script, and what it may touch."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
