"""Text that is handed in runs no code: a test for each row of the table in SECURITY.md.

A package `canary` is installed. Its import is heard, and what it has sings when it is called.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.submission import apart, bundle, loss_files
from contrastbench.domains import download, reading, saved
from contrastbench.domains import registry as domain_registry
from contrastbench.errors import UserError
from contrastbench.losses import LossSpec
from hostile import pickled, watched
from made_records import made

CANARY = """
from pathlib import Path
from shutil import copyfile
from subprocess import Popen
import torch
from torch import Tensor, nn
from contrastbench.losses import ScoreLoss

SONG = Path(__file__).with_name("song")

def sing(*_, **__):
    SONG.write_text(SONG.read_text() + "called " if SONG.exists() else "called ")

Path(__file__).with_name("heard").touch()

class Plain:
    __init__ = __call__ = sing

class Module(nn.Module):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        sing()
    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return (z1 - z2).square().mean()

class OfOne(Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.mean()

class Mine(ScoreLoss):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        sing()
        self.size = size
    def terms(self, scores):
        return -scores.mean_pos(scores.pos)

def function(z1: Tensor, z2: Tensor, size: int = 3) -> Tensor:
    sing()
    return (z1 - z2).square().mean()

def of_texts(source: str, target: str) -> None:
    sing()

def of_none() -> None:
    sing()
"""
SHELL = {"args": "echo ran > shell", "shell": True}
PYTHONS = {  # of the standard library: loss -> parameters
    "subprocess:Popen": SHELL,
    "subprocess:run": SHELL,
    "os:system": {},
    "logging:FileHandler": {"filename": "shell"},
    "io:FileIO": {"file": "shell", "mode": "w"},
    "zipfile:ZipFile": {"file": "shell", "mode": "w"},
    "shutil:copyfile": {},
    "antigravity:fly": {},
    "this:s": {},
}
NO_LOSSES = [  # of a package: they are imported where a user names them, and never called
    *("canary:Plain", "canary:OfOne", "canary:of_texts", "canary:of_none", "canary:Popen"),
    *("canary:copyfile", "canary:SONG"),
]
SUITE = "seeds: 0-1\ndomains: {graph: {datasets: [label-pairs]}}\nlosses: [infonce, LOSS]\n"


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that a call writes; beside it `heard`, which an import writes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "canary.py").write_text(CANARY)
    monkeypatch.syspath_prepend(folder)
    yield folder / "song"
    sys.modules.pop("canary", None)


def silent(*words: str) -> str:
    """Run a command that starts no process and imports no canary; its error, if it has one."""
    error = ""
    with watched(Path("nothing"), "subprocess.Popen") as seen:
        try:
            with suppress(click.exceptions.Exit):
                app(list(words), standalone_mode=False)
        except UserError as refusal:
            error = str(refusal)
    assert [one for one in seen if "echo" in one] == []
    assert not Path("shell").exists()
    return error


def untouched(canary: Path) -> bool:
    return not canary.exists() and not canary.with_name("heard").exists()


def forged(loss: str, params: dict[str, Any], **change: Any) -> Path:
    work = Experiment("graph", "label-pairs", LossSpec("infonce"), {})
    details = {"folds": [50.0, 50.0], "inner": [50.0, 50.0], "loss_by_epoch": [1.0]}
    change = {"loss": loss, "loss_code": "", "params": params, "details": details, **change}
    return made(Path("results"), work, 0, **change)


OWN = {"own_loss": {"name": "canary:Module", "files": {}}}
RECORDS: dict[str, dict[str, Any]] = {
    **{name: {"loss": name, "params": params} for name, params in PYTHONS.items()},
    "a package": {"loss": "canary:Module"},
    "a sum": {"loss": "infonce + 0.5*canary:Mine"},
    "a file": {"loss": "site/canary.py:Mine"},
    "an own loss without its hash": {"loss": "infonce", **OWN},
    "an own loss with a hash": {"loss": "mine", "loss_code": "1" * 64, **OWN},
    "an own loss without a name": {"loss": "infonce", "own_loss": {"name": "", "files": {}}},
    "data that code makes": {"loss": "infonce", "dataset": "site/canary.py:of_none"},
    "further data that code makes": {
        "loss": "infonce",
        "recipe": {"score_on": ["label-pairs", "pyg:Fake"]},
    },
    "a domain of a package": {"loss": "infonce", "domain": "canary"},
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_record(canary: Path, what: str) -> None:
    values = {"params": {}, **RECORDS[what]}
    path = forged(**values)
    of_new_data = ["--data", "csv:new.csv"]
    asked = (["reproduce"], ["predict", *of_new_data], ["embed", *of_new_data, "--output", "e.csv"])
    for name in (str(path), path.stem):
        for command, *words in asked:
            error = silent(command, name, *words)
            assert "runs Python of its own" in error, error
            assert "give --trust" in error
    assert untouched(canary)


def test_a_folder_of_results(canary: Path) -> None:
    """Whatever reads records, packed or not, takes their names as words, and loads no job."""
    Path("results/slurm").mkdir(parents=True)
    Path("results/slurm/1_submitted.pkl").write_bytes(pickled(Path("shell")))
    for values in RECORDS.values():
        forged(**{"params": {}, **values})
    work = Experiment("graph", "label-pairs", LossSpec("infonce"), {})
    made(Path("results"), work, 1)
    Path("suite.yaml").write_text(SUITE.replace("LOSS", "adnce"))
    reading = (
        *(["table", "suite.yaml"], ["plan", "suite.yaml"], ["compare", "suite.yaml"]),
        ["report", "suite.yaml", "--single", "page.html"],
    )
    for words in (*reading, ["report", "--output", "pages"], ["pack"], *reading):
        silent(*words, "--results", "results")
    silent("merge", "results", "--results", "other")
    assert untouched(canary)


def test_a_bundle(canary: Path) -> None:
    about = {"licence": "MIT", "paper": "https://example.org", "params": {}}
    files = {"mine.py": CANARY}
    for loss in ("mine.py:Mine", "canary:Mine", "subprocess:Popen", "infonce + mine.py:Mine"):
        for code in ("", "1" * 64):
            own = {"own_loss": {"name": loss, "files": files}, "loss_code": code}
            path = forged(loss, {}, **own)
            contents = {f"loss/{name}": text.encode() for name, text in files.items()}
            contents[path.relative_to("results").as_posix()] = path.read_bytes()
            claim = {**about, "suite": "standard-4", "loss": loss}
            Path("bundle.zip").write_bytes(bundle.bundle_bytes(claim, contents))
            before = sorted(Path().rglob("*"))
            said = silent("verify", "bundle.zip")
            assert sorted(Path().rglob("*")) == before
            assert "give --trust" in said or not loss.startswith("mine.py")
            assert untouched(canary)


WITHOUT_RUNNING = ("plan", "table", "compare", "report", "audit")


def words_on(command: str) -> list[str]:
    more = ["--single", "page.html"] if command == "report" else []
    return [command, "mine.yaml", *more, "--results", "results"]


@pytest.mark.parametrize("command", [*WITHOUT_RUNNING, "sweep"])
def test_a_sweep_file_of_what_is_no_loss(canary: Path, command: str) -> None:
    for name in [*PYTHONS, *NO_LOSSES]:
        for loss in (name, f"'infonce + 2*{name}'"):
            given = json.dumps(PYTHONS.get(name, {}))
            Path("mine.yaml").write_text(SUITE.replace("LOSS", f"{{{loss}: {given}}}"))
            error = silent(*words_on(command))
            assert "no loss" in error or "not two views" in error, (loss, error)
    assert not canary.exists()


@pytest.mark.parametrize("command", WITHOUT_RUNNING)
@pytest.mark.parametrize(
    "loss", ["canary:Mine", "canary:Module", "canary:function", "site/canary.py:Mine"]
)
def test_a_sweep_file_of_losses_that_are_not_run(canary: Path, loss: str, command: str) -> None:
    """They are imported, since a class says what its parameters are; none of them is made."""
    made(Path("results"), Experiment("graph", "label-pairs", LossSpec("infonce"), {}), 0)
    for name in (loss, f"infonce + 0.5*{loss}"):
        Path("mine.yaml").write_text(SUITE.replace("LOSS", f"{{'{name}': {{size: 2}}}}"))
        silent(*words_on(command))
    assert canary.with_name("heard").exists()
    assert not canary.exists()
    if loss != "canary:function":  # which is called by a training
        assert LossSpec(loss, {"size": 2}).make()
        assert canary.exists()


def test_a_published_table(canary: Path) -> None:
    """Its rows name losses of ours, or it is a user's own file, as a sweep is."""
    table = "title: T\nsource: S\ndomain: graph\nmetric: accuracy\ncolumns: {A: {dataset: MUTAG}}\n"
    for name in [*PYTHONS, *NO_LOSSES]:
        Path("mine.yaml").write_text(f"{table}rows: [{{name: X, loss: '{name}'}}]\n")
        assert silent("table", "mine.yaml", "--results", "results"), name
    assert not canary.exists()


def test_a_python_file_of_ones_own(canary: Path) -> None:
    """It runs as its user, and what it imports is called only where it is a loss."""
    for name in ("Plain", "OfOne", "of_texts", "of_none", "Popen", "copyfile", "SONG"):
        for words in (["check-loss"], ["run", "--domain", "graph", "--tiny", "--loss"]):
            error = silent(*words, f"site/canary.py:{name}")
            assert "no loss" in error or "not two views" in error, (name, error)
    assert not canary.exists()


def test_a_package_that_announces_a_loss(canary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from contrastbench.losses import registry

    entry = EntryPoint("theirs", "canary:Mine", "contrastbench.losses")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    assert "theirs" in registry.losses()
    path = forged("theirs", {})
    assert "give --trust" in silent("reproduce", str(path))
    assert untouched(canary), "a record alone imports nothing, whoever has announced it"
    assert LossSpec("theirs").complete.params == {"size": 3}
    assert not canary.exists()
    assert domain_registry.DOMAINS.keys() == {"graph", "image", "sentence", "tabular"}


def test_a_trusted_record_is_still_no_way_to_what_is_no_loss(canary: Path) -> None:
    for name, params in PYTHONS.items():
        path = forged(name, params)
        assert "no loss" in silent("reproduce", str(path), "--trust")
        shutil.rmtree("results")
    assert untouched(canary)


@pytest.mark.parametrize(
    ("bound", "unit"),
    [
        (download.MAX_DOWNLOAD_BYTES >> 30, "GiB"),
        (download.LEAST_RATE, "bytes a second"),
        (reading.UNPACKED >> 30, "GiB each"),
        (store.MAX_RECORD_BYTES >> 20, "MiB"),
        (bundle.MAX_BUNDLE_BYTES >> 20, "MiB"),
        (saved.MAX_NUMBERS, "values"),
        (saved.MAX_TEXT >> 30, "GiB"),
        (saved.MAX_BYTES >> 30, "GiB"),
        (loss_files.MAX_LINE, "letters"),
        (apart.MAX_MEMORY >> 30, "GiB of memory"),
        (apart.MAX_FILE >> 30, "GiB"),
    ],
)
def test_a_bound_of_the_page_is_that_of_the_code(bound: int, unit: str) -> None:
    assert f" {bound:,} {unit}" in (Path(__file__).parents[2] / "SECURITY.md").read_text()


def test_each_claim_of_the_page_has_its_test() -> None:
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    rows = re.findall(r"^\|.*\| `(\w+\.py)::(\w+)` \|$", page, re.MULTILINE)
    assert len(rows) > 20
    for file, name in rows:
        assert f"def {name}(" in Path(__file__).with_name(file).read_text(), (file, name)
