"""Run a bundle's loss in a process apart, with an empty home, and take what it hands back as bytes.

This side plans and judges without the loss's code: what the loss declares becomes a class of the
same name with the same arguments, ranges and limits, and nothing else, its stand-in.

The environment has what computes and no secrets; a process that takes too long is killed with all
that it has started. This keeps accidents and curiosity away. It is no sandbox: the loss runs as the
user who verifies, so a person reads it first.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.submission import child
from contrastbench.benchmarks.submission.child import Answer, Declared
from contrastbench.domains.download import cache_folder
from contrastbench.errors import UserError, printable
from contrastbench.losses.expression import file_and_class

KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CONTRASTBENCH_DATA")
KEPT_STARTS = ("OMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "CUDA_", "KMP_")
SECONDS = 1800  # of one cell, or of the laws
COMMAND = [sys.executable, "-P", "-m", child.__name__]

CLASS = """
from math import inf
from contrastbench.losses import ranges as of_ranges
from contrastbench.losses.base import Loss
from contrastbench.losses.limits import Limit, Towards
from contrastbench.losses.ranges import Given, Number

def Choice(choices):
    return of_ranges.Choice(*choices)

class {name}(Loss):
    ranges = {ranges!r}
    limits = {limits!r}
    def __init__(self{arguments}):
        super().__init__()
        vars(self).update({names})
"""


class Refused(UserError):
    """A loss that cannot be verified, as it or its bundle is not as it must be."""


def ask(folder: Path, seconds: float, **request: Any) -> Answer:
    """Return the answer of a child process to a request.

    Args:
        folder: the child's own, which is made.
        seconds: after which it is killed.
        request: what `child` reads.

    Raises:
        Refused: it ended without an answer, or its answer is an error.
    """
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(request))
    ending = start_child(folder, seconds)
    try:
        answer = Answer.model_validate_json(store.file_bytes(folder / "answer.json"))
    except ValueError:
        raise Refused(f"the loss's process {ending} without an answer") from None
    if answer.error is not None:
        raise Refused(f"the loss's process says: {printable(answer.error[:500])}")
    return answer


def start_child(folder: Path, seconds: float) -> str:
    """Run a child to its end, and say how it ended."""
    process = subprocess.Popen(
        [*COMMAND, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment(folder / "home"),
        start_new_session=True,
    )
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
    cache = cache_folder()
    own = Path(".cache/contrastbench")
    link = home / (cache.relative_to(Path.home()) if cache.is_relative_to(Path.home()) else own)
    link.parent.mkdir(parents=True)
    link.symlink_to(cache)
    hub = os.environ.get("HF_HUB_CACHE") or Path.home() / ".cache/huggingface/hub"
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(KEPT_STARTS)}
    folders = {"HOME": home, "XDG_CACHE_HOME": link.parent, "HF_HUB_CACHE": hub}
    return {**kept, **{name: str(folder) for name, folder in folders.items()}}


def write_stand_ins(terms: Mapping[str, Declared], folder: Path) -> None:
    """Write the files of stand-ins into a folder, each for a term FILE:CLASS.

    Raises:
        UserError: an argument has no name.
    """
    for term, declared in terms.items():
        if wrong := [key for key in declared.params if not key.isidentifier()]:
            raise UserError(f"{term} has an argument {wrong[0]!r}, which is no name")
        file, name = file_and_class(term) or ("", "")  # the bundle's terms were checked
        about = {"name": name, "ranges": declared.ranges, "limits": declared.limits}
        names = ", ".join(f"{key}={key}" for key in declared.params)
        arguments = "".join(f", {key}={value!r}" for key, value in declared.params.items())
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        with (folder / file).open("a") as text:
            text.write(CLASS.format(**about, names=names, arguments=arguments))
