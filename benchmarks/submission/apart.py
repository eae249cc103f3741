"""Run a bundle's loss in a process apart, with an empty home, and take what it hands back as bytes.

What the loss declares becomes its stand-in, which lives in memory, as all does that this side
keeps: nothing that a child could write is read but its answer. Without bubblewrap that is no
sandbox: a person reads the loss first, which runs as this user. Where the system has it and lets it
work, the process has no network, and sees no files but those that it needs.

The process apart is `python -m contrastbench.benchmarks.submission.apart FOLDER`: it does what
`request.json` asks there, and ends. It writes `answer.json`, and records into `results/`.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records import schema, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.devices import DECIDING
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import ROOT
from contrastbench.benchmarks.submission.loss_files import write_loss_files
from contrastbench.domains.download import cache_folder
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError, printable
from contrastbench.losses.expression import names, with_files
from contrastbench.losses.registry import Description, describe, is_registered
from contrastbench.losses.spec import LossSpec

SECONDS = 1800  # of one cell, or of the laws
MAX_MEMORY, MAX_FILE = 2**35, 2**30  # bytes
COMMAND = [sys.executable, "-P", "-m", __name__]
KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CONTRASTBENCH_DATA")
KEPT_STARTS = (*DECIDING, "OMP_", "ATEN_", "CUDA_", "KMP_")
# of the system: programs and libraries, and what they ask of the machine
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/sys"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
)
BUBBLE = [
    *("bwrap", "--unshare-all", "--die-with-parent", "--dev", "/dev", "--proc", "/proc"),
    # root may write to all that is mounted and to settings of the kernel, unless it is kept from it
    *("--cap-drop", "ALL", "--ro-bind", "/proc/sys", "/proc/sys"),
]


class Answer(Strict, allow_inf_nan=True, ser_json_inf_nan="constants"):
    """What a child says; a mistake of the loss is an answer, too."""

    error: str | None = None
    code: schema.Hash = "0" * 64  # sha256 of the loss's files
    laws: dict[str, str] = Field({})  # of each that holds: "declined", or nothing
    terms: tuple[Description, ...] = ()  # those that are not registered


class Refused(UserError):
    """A loss that cannot be verified, as it or its bundle is not as it must be."""


@contextmanager
def refusing(why: str = "") -> Iterator[None]:
    """Make a mistake within the block, which is the bundle's, a refusal: why, or what it says."""
    try:
        yield
    except (ValueError, LookupError, SyntaxError, RecursionError, MemoryError) as error:
        raise Refused(why or str(error) or type(error).__name__) from None


def ask(
    request: Mapping[str, Any], seconds: float, stop: threading.Event, wanted: Sequence[str] = ()
) -> tuple[Answer, list[bytes]]:
    """Return a child's answer to a request, and the files of the wanted records that it has made.

    Its folder is made for it and goes with it, and no child is told that of another. The seconds
    are all that it has; `stop`, which another thread sets, ends it earlier.

    Raises:
        Refused: it ended without an answer, or its answer is an error.
    """
    with own_folder() as folder:
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        command, root = [*COMMAND, str(folder)], Path(request["data_root"])
        ending = run_apart(command, folder, seconds, stop, root)
        with refusing(f"the loss's process {ending} without an answer"):
            answer = Answer.model_validate_json(store.file_bytes(folder / "answer.json"))
        if answer.error is not None:
            raise Refused(f"the loss's process says: {printable(answer.error[:500])}")
        with refusing("the loss's process made no valid record"):
            return answer, [store.file_bytes(folder / "results" / name) for name in wanted]


def answer_request(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_bytes())
    try:
        write_loss_files(request["files"], folder / "loss")
        asked = request.get("experiment", request)["loss"]
        loss = LossSpec(with_files(asked["name"], (folder / "loss").joinpath), asked["params"])
        answer = run(folder, request, loss) if "experiment" in request else declare(loss)
    except UserError as error:
        answer = Answer(error=str(error))
    (folder / "answer.json").write_text(answer.model_dump_json(), "utf-8")


def declare(loss: LossSpec) -> Answer:
    from contrastbench.losses import laws

    loss.check()
    terms = tuple(describe(term) for term in names(loss.name) if not is_registered(term))
    checked = laws.check_loss(loss.name, **loss.params)
    if broken := [f"{law.name}: {law.detail}" for law in checked if not law.passed]:
        raise UserError(broken[0])
    return Answer(code=loss.code, laws={law.name: law.word for law in checked}, terms=terms)


def run(folder: Path, request: dict[str, Any], loss: LossSpec) -> Answer:
    from contrastbench.benchmarks.running.runner import run_cell

    work = Experiment(**request["experiment"] | {"loss": loss})
    options = Options(folder / "results", data_root=Path(request["data_root"]), device="cpu")
    for seed in request["seeds"]:
        run_cell(work, seed, options)
    return Answer()


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for a program alone; it goes with all that the program has left there.

    TemporaryDirectory would follow links in it, in Python before 3.11.8.
    """
    folder = Path(mkdtemp(prefix="contrastbench-")).resolve()
    try:
        yield folder
    finally:
        with suppress(OSError, RecursionError):
            shutil.rmtree(folder)


def run_apart(
    command: Sequence[str], folder: Path, seconds: float, stop: threading.Event, *seen: Path
) -> str:
    """Run a command in a folder, to its end, for so long or until a stop, and say how it ended.

    All that it has started is killed with it, unless it left the group of its processes; confined,
    nothing can.

    Args:
        stop: set by another thread, ends it within a second.
        seen: files and folders that it reads.
    """
    variables = environment(folder / "home")
    start = bubble(folder, *seen, cache_folder(), Path(variables["HF_HUB_CACHE"]))
    given: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    given |= {"cwd": folder, "env": variables, "start_new_session": True}
    process, until = subprocess.Popen([*start, *command], **given), time.monotonic() + seconds
    try:
        while time.monotonic() < until and not stop.is_set():
            with suppress(subprocess.TimeoutExpired):
                return f"ended with exit code {process.wait(min(1, seconds))}"
        return "was stopped" if stop.is_set() else f"was killed after {seconds:.0f} seconds"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a program: an empty home, in which downloaded data are linked."""
    link = home / ".cache/contrastbench"
    link.parent.mkdir(parents=True)
    link.symlink_to(cache_folder())
    hub = os.environ.get("HF_HUB_CACHE") or str(Path.home() / ".cache/huggingface/hub")
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(KEPT_STARTS)}
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(link.parent)}
    return {**kept, **own, "HF_HUB_CACHE": hub}


def bubble(folder: Path, *seen: Path) -> list[str]:
    """Return the start of a command that confines the rest of it to a folder.

    It may read the system's programs, this Python with its packages, and what is `seen`. The list
    is empty where bubblewrap is missing or may not do this.
    """
    if not can_confine():
        return []
    modules = sys.path[not sys.flags.safe_path :]  # without the folder of the script, or this one
    read: tuple[str | Path, ...] = (*SYSTEM, sys.prefix, sys.base_prefix, ROOT, *modules, *seen)
    words = [*BUBBLE, "--tmpfs", "/tmp"]
    for path in dict.fromkeys(str(Path(one).absolute()) for one in read):
        words += ["--ro-bind-try", path, path]
    return [*words, "--bind", str(folder), str(folder), "--chdir", str(folder), "--"]


@cache
def can_confine() -> bool:
    with suppress(OSError):
        command = [*BUBBLE, "--ro-bind", "/", "/", "true"]
        return not subprocess.run(command, capture_output=True).returncode
    return False


if __name__ == "__main__":
    for what, most in ((resource.RLIMIT_DATA, MAX_MEMORY), (resource.RLIMIT_FSIZE, MAX_FILE)):
        least = min(most, resource.getrlimit(what)[1] % 2**64)  # -1: there is no limit
        resource.setrlimit(what, (least, least))
    answer_request(Path(sys.argv[1]))
