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
from contrastbench.errors import UserError
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import LossSpec

MAX_MEMORY, MAX_FILE = 2**35, 2**30  # bytes
Request = dict[str, Any]


def main() -> None:
    """Answer the request of a folder, within limits of memory and of the size of files."""
    for what, most in ((resource.RLIMIT_DATA, MAX_MEMORY), (resource.RLIMIT_FSIZE, MAX_FILE)):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    answer_request(Path(sys.argv[1]))


def answer_request(folder: Path) -> None:
    """Answer the request of a folder; a mistake of the loss is an answer, too."""
    request = json.loads((folder / "request.json").read_text())
    try:
        said = {"declare": declare, "run": run}[request["do"]](folder, request)
    except UserError as error:
        said = {"error": str(error)}
    (folder / "answer.json").write_text(json.dumps(said))


def declare(folder: Path, request: Request) -> dict[str, Any]:
    """Return what the loss declares, as Python literals, and what the laws say of it."""
    from contrastbench.losses import laws

    loss = LossSpec(request["loss"], request["params"])
    loss.check()
    about = {term: describe(term) for term in request["terms"]}
    found = laws.check_loss(loss.name, **loss.params)
    return {
        "code": loss.code,
        "laws": [[one.name, one.passed, one.word, one.detail] for one in found],
        "classes": {
            term: [
                repr({**dict.fromkeys(one.required), **one.params}),
                repr(dict(one.ranges)),
                repr(tuple(one.limits)),
            ]
            for term, one in about.items()
        },
    }


def run(folder: Path, request: Request) -> dict[str, Any]:
    """Run the seeds of an experiment, which publishes their records."""
    from contrastbench.benchmarks.running.runner import run_cell

    root = request["data_root"]
    loss = LossSpec(request["loss"], request["params"])
    work = Experiment(request["domain"], request["dataset"], loss, request["recipe"])
    options = Options(folder / "results", root and Path(root), "cpu")
    for seed in request["seeds"]:
        run_cell(work, seed, options)
    return {}


if __name__ == "__main__":
    main()
