"""The process in which a bundle's loss runs; it does what one request asks, and ends.

`python -m contrastbench.benchmarks.submission.child FOLDER` reads `request.json` there. It writes
`answer.json`, or records into `results/`. What it writes is judged by a process that never imports
the loss.
"""

import json
import resource
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError
from contrastbench.losses.limits import Limit
from contrastbench.losses.ranges import Choice, Given, Number
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import LossSpec

MAX_MEMORY, MAX_FILE = 2**35, 2**30  # bytes
AnyRange = Annotated[Choice | Given | Number, Field(union_mode="left_to_right")]
Request = dict[str, Any]


class Declared(Strict, allow_inf_nan=True):
    """The arguments, ranges and limits of a term; an argument without a default has None."""

    params: dict[str, Any]
    ranges: dict[str, AnyRange]
    limits: tuple[Limit, ...]


class Answer(Strict, ser_json_inf_nan="constants"):
    """What a child says; a mistake of the loss is an answer, too."""

    error: str | None = None
    code: str = ""  # sha256 of the loss's files
    laws: tuple[tuple[str, bool, str, str], ...] = ()  # name, whether it holds, word, detail
    terms: dict[str, Declared] = Field(default_factory=dict)


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
        answer = {"declare": declare, "run": run}[request["do"]](folder, request)
    except UserError as error:
        answer = Answer(error=str(error))
    (folder / "answer.json").write_text(answer.model_dump_json())


def declare(_: Path, request: Request) -> Answer:
    """Return what the loss declares, and what the laws say of it."""
    from contrastbench.losses import laws

    loss = LossSpec(**request["loss"])
    loss.check()
    terms = {}
    for term in request["terms"]:
        about = describe(term)
        params = {**dict.fromkeys(about.required), **about.params}
        terms[term] = Declared(params=params, ranges=dict(about.ranges), limits=about.limits)
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
