"""What a loss may try in the process that runs it for `bench verify`.

Most tries end without a record, and so without a verdict. What can succeed is in
`UNDEFENDED`, and `SECURITY.md` says what a reader of the source looks for.
"""

import hashlib
import os
import random
import select
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from pprint import pformat
from tempfile import mkdtemp

import pytest

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.opening import open_cells
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
    cell = open_cells(WORK, 0, Options(folder, device="cpu")).asked.cell
    known = {**cell.identity, "loss": "mine"}
    text = CLASS.format(**{"top": "", "own": "", "step": "", **parts}, known=pformat(known))
    code = hashlib.sha256("\0".join(["Mine", text]).encode()).hexdigest()
    wanted = store.record_path(Path(), {**known, "loss_code": code})
    work = asdict(replace(WORK, loss=LossSpec("mine.py:Mine")))
    about = {"files": {"mine.py": text}, "experiment": work, "seeds": [0], "data_root": "."}
    _, (data,) = apart.ask(about, seconds, threading.Event(), [wanted.as_posix()])
    return returned_record(data, wanted, {"details": {}})


@pytest.fixture(autouse=True)
def quick_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start children warm, which a bubble would keep from their server."""
    monkeypatch.setattr(apart, "COMMAND", [python(), *apart.COMMAND[1:]])
    monkeypatch.setattr(apart, "can_confine", lambda: False)


@pytest.mark.parametrize("name", STOPPED)
def test_a_program_without_a_record_has_no_verdict(
    name: str, tmp_path: Path, found: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused):
        attempt(tmp_path, 3 if name == "never ends" else SECONDS, **STOPPED[name])
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


HAND = "import subprocess, sys; sys.exit(subprocess.call(['sleep', {0!r}], start_new_session={1}))"


@pytest.mark.parametrize("bubble", [False, True])
def test_what_a_loss_has_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bubble: bool
) -> None:
    """Even what has left its group, where it is confined."""
    cold(monkeypatch, bubble)
    sleep = f"{random.SystemRandom().uniform(1e8, 1e9):.6f}"
    start = HAND.format(sleep, bubble)
    attempt(tmp_path, top=f"subprocess.Popen([sys.executable, '-c', {start!r}]); os.times()")
    for pid in running(sleep):
        handle = os.pidfd_open(pid)
        assert select.select([handle], [], [], 60)[0], "it lives on"


def running(word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def cold(monkeypatch: pytest.MonkeyPatch, bubble: bool) -> None:
    monkeypatch.undo()
    if bubble and not apart.can_confine():
        pytest.skip("bubblewrap is missing, or may not confine here")
    monkeypatch.setattr(apart, "can_confine", lambda: bubble)
    monkeypatch.setattr(apart, "COMMAND", [sys.executable, *apart.COMMAND[1:]])


REACHES = {  # what a loss does that it has no business with, by what it reaches
    "a file of the user": "Path({secret!r}).read_text()",
    "a folder of the user": "Path({secret!r}).with_name('new').touch()",
    "the judge's own code": "Path(store.__file__).with_name('evil.py').touch()",
    "a socket": "__import__('socket').create_connection(('127.0.0.1', {port}), 5)",
    "the judge": "os.kill({judge}, 0)",
    "the judge's memory": "Path('/proc/{judge}/maps').read_text()",
    "downloaded data": "Path.home().joinpath('.cache/contrastbench/new').touch()",
}
if not os.getuid():
    REACHES["a setting of the machine"] = "os.open('/proc/sys/kernel/hostname', os.O_WRONLY)"
    REACHES["a power of root"] = "os.chroot('/')"


@pytest.mark.parametrize("bubble", [False, True])
def test_a_bubble_keeps_a_loss_from_the_network_and_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bubble: bool, found: Callable[[str], None]
) -> None:
    """Without one, each of these is reached, as a reader is told."""
    cold(monkeypatch, bubble)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder().mkdir()
    home = Path(mkdtemp(dir=Path.home()))
    try:
        (home / "secret").write_text("it")
        with socket.create_server(("127.0.0.1", 0)) as server:
            about = {"secret": str(home / "secret"), "port": server.getsockname()[1]}
            acts = {name: act.format(**about, judge=os.getpid()) for name, act in REACHES.items()}
            top = f"reached = []\nfor name, act in {pformat(acts)}.items():\n    try:\n        "
            top += "exec(act)\n        reached.append(name)\n    except OSError: pass"
            top += "\nraise ValueError(reached)"
            with pytest.raises(Refused, match="ValueError") as error:
                attempt(tmp_path, top=top)
    finally:
        shutil.rmtree(home)
        Path(store.__file__).with_name("evil.py").unlink(missing_ok=True)
    reached = {name for name in REACHES if repr(name) in str(error.value)}
    assert reached == (set() if bubble else {*REACHES})
    found(f"bundles: {len(reached)} of {len(REACHES)} places reached, in a bubble: {bubble}")
