"""Commands `bench submit` and `bench verify`: a loss with its records as one file."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import parse_losses
from contrastbench.benchmarks.cli.loading import loading
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.merge import SHIPPED
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.benchmarks.tables import catalogue
from contrastbench.errors import UserError


def submit(
    what: Annotated[str, typer.Argument(help="Suite, such as standard, or a sweep file.")],
    loss: Annotated[str, typer.Option(help="Loss of your own, as mine.py:Mine.")],
    results: opt.Results = Path("results"),
) -> None:
    """Write a loss with all its records of a suite as one file.

    Beside mine.py stands mine.yaml with two lines, licence: MIT and paper: https://...
    The bundle has these, the files of the loss, and every record with its checksum.

    Example: bench submit standard --loss mine.py:Mine
    """
    from contrastbench.benchmarks.submission.submit import bundle_loss

    (spec,) = parse_losses([loss], {})
    say(bundle_loss(what, spec, results))


def verify(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="File that bench submit wrote.")],
    what: Annotated[
        str | None, typer.Argument(help="Sweep file, where the suite does not ship.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the Python of the loss, which you have read.")
    ] = False,
    cells: Annotated[int, typer.Option(min=1, help="Number of cells that run again.")] = 8,
    draw: Annotated[
        str, typer.Option(help="Text that joins the draw of cells, such as the number of a CI run.")
    ] = "",
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.DeviceOfRecord = None,
) -> None:
    """Check a bundle, and run a sample of its cells again.

    The verdict is Markdown for a comment. Limits of differences come from the records of --results
    and those that come with contrastbench. Exit code 1: the bundle is not verified.

    Example: bench verify mine-standard-2.zip --trust
    """
    from contrastbench.benchmarks.submission import bundle

    check_data_root(data_root)
    try:
        given = bundle.read_bundle(path)
    except bundle.Refused as error:
        show(f"## {path.name}: NOT verified\n\n{error}")
        raise typer.Exit(1) from None
    suite = what or given.about.suite
    if what is None and suite not in catalogue.table_files():
        raise UserError(f"the bundle is for {suite!r}, which does not ship: add its sweep file")
    with loading():
        from contrastbench.benchmarks.submission import comment
        from contrastbench.benchmarks.submission.verify import Asked, verify_bundle

    places = list(dict.fromkeys([results, SHIPPED]))
    asked = Asked(suite, places, trust, cells, draw, data_root, device)
    with TemporaryDirectory(prefix="contrastbench-") as folder:
        case = verify_bundle(given, asked, Path(folder))
        show(comment.comment(case))
    if case.problem:
        raise typer.Exit(1)
