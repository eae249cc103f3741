"""What a loss may try in the process that runs it for `bench verify`.

Most tries end without a record, and so without a verdict. What can succeed is in
`UNDEFENDED`, and `SECURITY.md` says what a reader of the source looks for.
"""

import hashlib
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.opening import prepare_cells
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission import apart
from contrastbench.benchmarks.submission.apart import Refused
from contrastbench.benchmarks.submission.verify import returned_record
from contrastbench.domains.download import cache_folder
from contrastbench.losses.spec import LossSpec
from warm import python

SECONDS = 600  # of a child on a busy machine
WORK = make_experiment("graph", None, LossSpec("infonce"), {"epochs": 1}, tiny=True)
CLASS = """
import hashlib, json, os, sys, subprocess
from pathlib import Path
from contrastbench.benchmarks.records import store
from contrastbench.losses.library.infonce import InfoNCE

own = "Mine\\0" + Path(__file__).read_text()
WANTED = {known} | {{"loss_code": hashlib.sha256(own.encode()).hexdigest()}}

def publish(data):
    path = store.record_path(Path("results"), WANTED)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)

def forged(**more):
    about = {{"details": {{}}, "environment": {{}}, "status": "ok", "main": "accuracy"}}
    record = {{**WANTED, **about, "schema": 1, "metrics": {{"accuracy": 100.0}}, "seconds": 1.0}}
    record = {{**record, "key": store.key(record), **more}}
    return store.serialise_record(record)

{top}

class Mine(InfoNCE):
    {own}
    def terms(self, scores):
        {step}
        return super().terms(scores)
"""
LEAVE = "Path('answer.json').write_text('{}'); os._exit(0)"
STOPPED: dict[str, dict[str, str]] = {
    "leaves at once": {"top": "os._exit(0)"},
    "leaves in a step": {"step": "os._exit(0)"},
    "raises SystemExit": {"step": "sys.exit(0)"},
    "says that all is well": {"step": LEAVE},
    "writes a word for a record": {"step": f"publish(b'verified'); {LEAVE}"},
    "forges a record of another loss": {"step": f"publish(forged(loss='infonce')); {LEAVE}"},
    "forges a better key": {"step": f"publish(forged(key='0' * 64)); {LEAVE}"},
    "forges what no run writes": {"step": f"publish(forged(metrics={{'accuracy': 1e9}})); {LEAVE}"},
    "writes without end": {"step": f"publish(b' ' * 2**25); {LEAVE}"},
    "writes two gigabytes": {"step": "open('large', 'wb').truncate(2**31)"},
    "puts a pipe in place": {
        "step": f"publish(b''); p = next(Path('results').rglob('*.json')); "
        f"p.unlink(); os.mkfifo(p); {LEAVE}"
    },
    "answers with a deep tower": {
        "step": "Path('answer.json').write_text('[' * 10**6); os._exit(0)"
    },
    "answers with a text": {"step": "Path('answer.json').write_text('\"yes\"'); os._exit(0)"},
    "takes all memory": {"step": "bytearray(2**44)"},
    "never ends": {"step": "while True: pass"},
    "says so in its error": {"top": "raise ValueError('## verified')"},
}
UNDEFENDED: dict[str, dict[str, str]] = {
    "writes a record of its own": {"step": f"publish(forged()); {LEAVE}"},
    "reads the variables of its parent": {
        "step": "known = Path(f'/proc/{os.getppid()}/environ').read_bytes()\n"
        f"        if b'PATH=' in known: publish(forged()); {LEAVE}"
    },
    "changes how the encoder is scored": {
        "top": "from contrastbench.domains.graph import domain\n"
        "from contrastbench.domains.base import Evaluation\n"
        "domain.GraphDomain.evaluate = lambda *_: Evaluation({'accuracy': 100.0}, 'accuracy')"
    },
}


def attempt(folder: Path, seconds: float = SECONDS, **parts: str) -> store.Record:
    """Run a program as a loss, and return the record that comes back."""
    ((cell, _),) = prepare_cells(WORK, 0, Options(folder, device="cpu"), None)
    known = {**cell.identity, "loss": "mine"}
    text = CLASS.format(**{"top": "", "own": "", "step": "", **parts}, known=known)
    code = hashlib.sha256("\0".join(["Mine", text]).encode()).hexdigest()
    (folder / "mine.py").write_text(text)
    work = asdict(replace(WORK, loss=LossSpec(f"{folder / 'mine.py'}:Mine")))
    apart.ask(folder / "child", seconds, experiment=work, seeds=[0], data_root=".")
    wanted = store.record_path(folder / "child/results", {**known, "loss_code": code})
    return returned_record(wanted, "it")


@pytest.fixture(autouse=True)
def quick_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "COMMAND", [python(), *apart.COMMAND[1:]])


@pytest.mark.parametrize("name", STOPPED)
def test_a_program_without_a_record_has_no_verdict(
    name: str, tmp_path: Path, found: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused) as error:
        attempt(tmp_path, 3 if name == "never ends" else SECONDS, **STOPPED[name])
    assert len(str(error.value).splitlines()) == 1
    assert capfd.readouterr() == ("", "")
    found(f"bundles: a loss that {name}: no verdict")


@pytest.mark.parametrize("name", UNDEFENDED)
def test_what_a_reader_must_find_is_on_the_page(name: str, tmp_path: Path) -> None:
    """The child runs the loss as it is: whoever reads it finds these, or nobody does."""
    assert attempt(tmp_path, **UNDEFENDED[name])["metrics"] == {"accuracy": 100.0}
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    assert name in page


def test_the_loss_meets_an_empty_home_and_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    seen = tmp_path / "seen"
    look = f"Path({str(seen)!r}).write_text(str([dict(os.environ), os.listdir(Path.home())]))"
    record = attempt(tmp_path, top=look)
    assert record["status"] == "ok"
    text = seen.read_text()
    assert "secret" not in text
    assert text.endswith("['.cache']]")


@pytest.mark.parametrize("folder", ["x", "/x", ".cache"])
def test_downloads_are_found_wherever_they_are(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / folder))
    here = cache_folder()
    for name, value in apart.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert cache_folder().resolve() == here.resolve()


def test_what_a_loss_has_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "COMMAND", [sys.executable, *apart.COMMAND[1:]])
    start = (
        f"Path({str(tmp_path / 'pid')!r}).write_text(str(subprocess.Popen(['sleep', '99']).pid))"
    )
    attempt(tmp_path, top=start)
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(int((tmp_path / "pid").read_text()))
        assert select.select([handle], [], [], 60)[0], "it lives on"
