"""Commands `bench submit` and `bench verify`: a loss with its records as one file."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.options import parse_losses
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.benchmarks.tables import catalogue
from contrastbench.errors import UserError, tell

CONFINED = "no network and no files but its own, Python's, and those of data (bwrap)"
UNCONFINED = "bubblewrap would keep it from the network and your files: install bwrap"


def submit(what: str, loss: opt.Required, results: Path = Path("results")) -> None:
    """Write a loss with all its records of a suite as one file.

    Beside mine.py stands mine.yaml with two lines, licence: MIT and paper: https://...
    The bundle has these, the files of the loss, and its records.

    Args:
        what: Suite, such as standard, or a sweep file.
        loss: Loss of your own, as mine.py:Mine.

    Example: bench submit standard --loss mine.py:Mine
    """
    from contrastbench.benchmarks.submission.bundle import bundle_loss

    (spec,) = parse_losses([loss])
    say(bundle_loss(what, spec, results))


def verify(
    path: Annotated[Path, Argument(metavar="BUNDLE")],
    what: Annotated[str | None, Argument()] = None,
    trust: opt.Trust = False,
    quick: opt.Quick = False,
    keep: Path | None = None,
    jobs: Annotated[int, Option(min=1)] = 1,
    results: Path = Path("results"),
    data_root: opt.DataRoot = None,
) -> None:
    """Run all cells of a bundle's loss anew, and judge by them.

    A process of its own runs the loss. The bundle's records are a claim, which is compared; where
    the loss stands follows from the records made here, those of --results and those that come with
    contrastbench. Data are looked for in the current folder, or --data-root. With --keep an
    interrupted verification goes on. Exit code 0: verified; with --quick, that part agrees.

    Args:
        path: File that bench submit wrote.
        what: Sweep file, where the suite does not ship.
        trust: Run the Python of the loss, which you have read.
        keep: Folder for the records made here, to be merged.
        jobs: Number of processes at a time.

    Example: bench verify mine-standard-4.zip --trust
    """
    from contrastbench.benchmarks.submission.bundle import read_bundle

    check_data_root(data_root)
    given = read_bundle(path)
    suite = what or given.about.suite
    if what is None and suite not in catalogue.table_files():
        raise UserError(f"the bundle is for {suite!r}, which does not ship: add its sweep file")
    from contrastbench.benchmarks.report.words import rendered
    from contrastbench.benchmarks.submission.apart import can_confine
    from contrastbench.benchmarks.submission.verify import Verification, run_checks

    if not trust:
        show(rendered("verification.md.j2", given=given, case=None))
        raise UserError(f"{path} runs Python of its own: read it, then give --trust")
    places, root = list(dict.fromkeys([results, SHIPPED])), (data_root or Path()).absolute()
    tell(f"data are looked for in {root} (--data-root), then where downloads are kept")
    tell(f"the loss {'sees ' + CONFINED if can_confine() else 'runs as you do: ' + UNCONFINED}")
    case = Verification(given, suite, places, root, quick, keep, jobs)
    run_checks(case)
    show(rendered("verification.md.j2", given=given, case=case))
    if not case.verified:
        raise typer.Exit(1)
