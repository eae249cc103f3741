"""Which version and commit a record names, from a checkout and from an installed package."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from contrastbench.benchmarks.running import provenance
from contrastbench.benchmarks.running.provenance import Provenance

COMMIT = "90f897c0d8b6a1f9a1a2b3c4d5e6f708192a3b4c"
ADDRESS = {"url": "https://example.org/contrastbench", "vcs_info": {"commit_id": COMMIT}}
STALE = "0.1.1.dev3+g90f897c0d"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose editable install is older than its last commit."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init")
    (folder / "file").write_text("1")
    git(folder, "add", "file")
    git(folder, "commit", "-m", "one")
    package = SimpleNamespace(version=STALE, read_text=lambda name: None)
    monkeypatch.setattr(provenance, "distribution", lambda name: package)
    return folder


@pytest.mark.parametrize(
    ("version", "source", "commit"),
    [
        ("0.1.0", ADDRESS, COMMIT),
        (STALE, {"url": "file:///there", "dir_info": {}}, "90f897c0d"),
        ("0.1.1.dev3+g90f897c0d.d20261122", None, "90f897c0d+changes"),
        ("0.1.0", None, None),
    ],
)
def test_an_installed_package_says_its_commit(
    version: str, source: object, commit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if source is None else json.dumps(source)
    package = SimpleNamespace(version=version, read_text=lambda name: text)
    monkeypatch.setattr(provenance, "distribution", lambda name: package)
    assert provenance.of_installation() == Provenance(version, commit)


@pytest.mark.parametrize("tag", ["", "v0.2.0"])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_the_version_of_a_checkout_names_its_commit(
    checkout: Path, tag: str, ahead: bool, changed: bool
) -> None:
    if tag:
        git(checkout, "tag", tag)
    if ahead:
        git(checkout, "commit", "--allow-empty", "-m", "two")
    if changed:
        (checkout / "file").write_text("2")
    found = provenance.of_folder(checkout)
    head = git(checkout, "rev-parse", "HEAD")
    assert found.commit == head + "+changes" * changed
    assert found.version is not None
    base, _, local = found.version.partition("+")
    assert base == (tag.removeprefix("v") or "0")
    if tag and not ahead and not changed:
        assert local == "", "the release itself"
    else:
        named = re.fullmatch(r"g([0-9a-f]{9})(\.changes)?", local)
        assert named, found.version
        assert head.startswith(named[1])
        assert bool(named[2]) is changed


def test_a_checkout_that_git_cannot_read_names_neither(checkout: Path) -> None:
    (checkout / ".git" / "HEAD").unlink()
    assert provenance.of_folder(checkout) == Provenance(None, None)


def test_the_commit_is_that_of_the_code_that_was_loaded(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "ROOT", checkout)
    provenance.provenance.cache_clear()
    try:
        first = provenance.provenance()
        git(checkout, "commit", "--allow-empty", "-m", "two")
        assert provenance.provenance() == first
    finally:
        provenance.provenance.cache_clear()
