"""Run a bundle's loss in a process apart, with an empty home, and take what it hands back as bytes.

This side plans and judges without the loss's code: what the loss declares becomes a class of the
same name with the same arguments, ranges and limits, and nothing else, its stand-in. A process that
takes too long is killed with all that it has started. This keeps accidents and curiosity away. It
is no sandbox: the loss runs as the user who verifies, so a person reads it first.

The process apart is `python -m contrastbench.benchmarks.submission.apart FOLDER`: it does what
`request.json` asks there, and ends. It writes `answer.json`, and records into `results/`.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.download import cache_folder
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError, printable
from contrastbench.losses.expression import file_and_class
from contrastbench.losses.registry import Description, describe, is_registered, term_names
from contrastbench.losses.spec import LossSpec

KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CONTRASTBENCH_DATA")
KEPT_STARTS = ("OMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "CUDA_", "KMP_")
SECONDS = 1800  # of one cell, or of the laws
MAX_MEMORY, MAX_FILE = 2**35, 2**30  # bytes
COMMAND = [sys.executable, "-P", "-m", __name__]
STAND_IN = f"from {__name__} import stand_in\n{{0}} = stand_in(__name__, {{0!r}}, {{1!r}})\n"


class Answer(Strict, allow_inf_nan=True, ser_json_inf_nan="constants"):
    """What a child says; a mistake of the loss is an answer, too."""

    error: str | None = None
    code: str = ""  # sha256 of the loss's files
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


def ask(folder: Path, seconds: float, **request: Any) -> Answer:
    """Return the answer of a child process, which is killed after those seconds, to a request.

    Raises:
        Refused: it ended without an answer, or its answer is an error.
    """
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(request))
    ending = start_child(folder, seconds)
    with refusing(f"the loss's process {ending} without an answer"):
        answer = Answer.model_validate_json(store.file_bytes(folder / "answer.json"))
    if answer.error is not None:
        raise Refused(f"the loss's process says: {printable(answer.error[:500])}")
    return answer


def start_child(folder: Path, seconds: float) -> str:
    """Run a child to its end, and say how it ended."""
    given: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    given |= {"cwd": folder, "env": environment(folder / "home"), "start_new_session": True}
    process = subprocess.Popen([*COMMAND, str(folder)], **given)
    try:
        return f"ended with exit code {process.wait(seconds)}"
    except subprocess.TimeoutExpired:
        return f"was killed after {seconds:.0f} seconds"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(home: Path) -> dict[str, str]:
    """Return a child's variables: an empty home, in which downloaded data are linked."""
    link = home / ".cache/contrastbench"
    link.parent.mkdir(parents=True)
    link.symlink_to(cache_folder())
    hub = os.environ.get("HF_HUB_CACHE") or str(Path.home() / ".cache/huggingface/hub")
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(KEPT_STARTS)}
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(link.parent), "HF_HUB_CACHE": hub}


def write_stand_ins(terms: Mapping[str, Description], folder: Path) -> None:
    """Write the files of stand-ins into a folder, each for a term FILE:CLASS."""
    for term, declared in terms.items():
        file, name = file_and_class(term) or ("", "")  # the bundle's terms were checked
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        with (folder / file).open("a") as text:
            text.write(STAND_IN.format(name, Answer(terms=(declared,)).model_dump_json()))


def stand_in(module: str, name: str, answer: str) -> type:
    """Return a class that has the arguments, ranges and limits that an answer declares."""
    from contrastbench.losses.base import Loss

    (about,) = Answer.model_validate_json(answer).terms

    def keep(self: Any, **params: Any) -> None:
        Loss.__init__(self)
        vars(self).update({**about.params, **params})

    defaults = {**dict.fromkeys(about.required, Parameter.empty), **about.params}
    own = [Parameter(k, Parameter.KEYWORD_ONLY, default=v) for k, v in defaults.items()]
    vars(keep)["__signature__"] = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *own])
    has = {"ranges": about.ranges, "limits": about.limits, "__init__": keep, "__module__": module}
    return type(name, (Loss,), has)


def main() -> None:
    """Answer the request of a folder, within limits of memory and of the size of files."""
    for what, most in ((resource.RLIMIT_DATA, MAX_MEMORY), (resource.RLIMIT_FSIZE, MAX_FILE)):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    answer_request(Path(sys.argv[1]))


def answer_request(folder: Path) -> None:
    """Answer the request of a folder."""
    request = json.loads((folder / "request.json").read_text())
    try:
        answer = run(folder, request) if "experiment" in request else declare(request)
    except UserError as error:
        answer = Answer(error=str(error))
    (folder / "answer.json").write_text(answer.model_dump_json())


def declare(request: dict[str, Any]) -> Answer:
    """Return what the loss declares, and what the laws say of it."""
    from contrastbench.losses import laws

    loss = LossSpec(**request["loss"])
    loss.check()
    terms = tuple(describe(term) for term in term_names(loss.name) if not is_registered(term))
    checked = laws.check_loss(loss.name, **loss.params)
    if broken := [f"{law.name}: {law.detail}" for law in checked if not law.passed]:
        raise UserError(broken[0])
    return Answer(code=loss.code, laws={law.name: law.word for law in checked}, terms=terms)


def run(folder: Path, request: dict[str, Any]) -> Answer:
    """Run the seeds of an experiment, which publishes their records."""
    from contrastbench.benchmarks.running.runner import run_cell

    about = request["experiment"]
    work = Experiment(**about | {"loss": LossSpec(**about["loss"])})
    options = Options(folder / "results", Path(request["data_root"]), "cpu")
    for seed in request["seeds"]:
        run_cell(work, seed, options)
    return Answer()


if __name__ == "__main__":
    main()
