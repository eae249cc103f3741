"""Packages with domains, seen by this process and its workers without being installed."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
Install = Callable[..., None]  # of a distribution and its entry points


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Announces domains as pip does: a folder of metadata beside the modules."""
    site = tmp_path / "site"
    site.mkdir()
    modules = set(sys.modules)

    def announce(distribution: str, *entries: str) -> None:
        folder = site / f"{distribution}-0.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {distribution}\nVersion: 0.1.0\n")
        lines = "\n".join(["[contrastbench.domains]", *entries])
        (folder / "entry_points.txt").write_text(lines)
        importlib.invalidate_caches()

    folders = [str(site), str(HERE), str(HERE / "audio")]
    for folder in folders:
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))  # of workers
    yield announce
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in ("broken_domains", "contrastbench_audio"):
            del sys.modules[name]


@pytest.fixture
def audio(install: Install) -> None:
    """Install the audio domain."""
    install("contrastbench_audio", "audio = contrastbench_audio:DECLARATION")
