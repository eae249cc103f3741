"""Which commit a record names, from a checkout and from an installed package."""

import json
import subprocess
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from contrastbench.benchmarks.running import environment

COMMIT = "90f897c0d8b6a1f9a1a2b3c4d5e6f708192a3b4c"
ADDRESS = {"url": "https://example.org/contrastbench", "vcs_info": {"commit_id": COMMIT}}


@pytest.mark.parametrize(
    ("version", "source", "commit"),
    [
        ("0.1.0", ADDRESS, COMMIT),
        ("0.1.1.dev3+g90f897c0d", {"url": "file:///there", "dir_info": {}}, "90f897c0d"),
        ("0.1.1.dev3+g90f897c0d.d20261122", None, "90f897c0d+changes"),
        ("0.1.0", None, None),
    ],
)
def test_an_installed_package_says_its_commit(
    version: str, source: object, commit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if source is None else json.dumps(source)
    package = SimpleNamespace(version=version, read_text=lambda name: text)
    monkeypatch.setattr(environment, "distribution", lambda name: package)
    assert environment.of_installation() == commit


def test_what_is_not_installed_says_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(environment, "distribution", missing)
    assert environment.of_installation() is None


def test_a_checkout_says_whether_files_differ(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "one")
    commit = environment.of_checkout(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "file").write_text("2")
    assert environment.of_checkout(tmp_path) == f"{commit}+changes"
    assert environment.of_checkout(tmp_path / "nowhere") is None


def test_the_commit_is_that_of_the_code_that_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = iter("ab")
    monkeypatch.setattr(environment, "of_checkout", lambda _: next(moving))
    monkeypatch.setattr(environment, "of_installation", lambda: next(moving))
    environment.commit.cache_clear()
    try:
        assert [environment.commit() for _ in range(2)] == ["a", "a"]
    finally:
        environment.commit.cache_clear()
