"""The process in which a bundle's loss runs; it does what one request asks, and ends.

`python -m contrastbench.benchmarks.submission.child FOLDER` reads `request.json` there. It writes
`answer.json`, or records into `results/`. What it writes is judged by a process that never imports
the loss.
"""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError
from contrastbench.losses.registry import Description, describe, is_registered, term_names
from contrastbench.losses.spec import LossSpec

MAX_MEMORY, MAX_FILE = 2**35, 2**30  # bytes
Request = dict[str, Any]


class Answer(Strict, allow_inf_nan=True, ser_json_inf_nan="constants"):
    """What a child says; a mistake of the loss is an answer, too."""

    error: str | None = None
    code: str = ""  # sha256 of the loss's files
    laws: tuple[tuple[str, bool, str, str], ...] = ()  # name, whether it holds, word, detail
    terms: tuple[Description, ...] = ()  # those that are not registered


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


def declare(request: Request) -> Answer:
    """Return what the loss declares, and what the laws say of it."""
    from contrastbench.losses import laws

    loss = LossSpec(**request["loss"])
    loss.check()
    terms = tuple(describe(term) for term in term_names(loss.name) if not is_registered(term))
    checked = laws.check_loss(loss.name, **loss.params)
    results = tuple((law.name, law.passed, law.word, law.detail) for law in checked)
    return Answer(code=loss.code, laws=results, terms=terms)


def run(folder: Path, request: Request) -> Answer:
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
