"""Commands `bench table`, `audit`, `compare` and `report`, from records and without torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import parse_losses
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.moment import one_moment
from contrastbench.benchmarks.running import checked
from contrastbench.errors import UserError, tell
from contrastbench.losses.spec import LossSpec

if TYPE_CHECKING:
    from contrastbench.benchmarks.tables.table import Table


@one_moment()
def table(
    name: Annotated[
        str | None, typer.Argument(help="Table (bench list tables) or YAML file.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="Format: md, csv or latex.")] = "md",
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Write all tables, and those of YAML files in --results, there as md and csv.",
        ),
    ] = False,
    loss: opt.Join = None,
    selection: opt.Selection = None,
    results: opt.Results = Path("results"),
) -> None:
    """Show a published table beside our numbers.

    Example: bench table adnce-table5 --format latex
    """
    from contrastbench.benchmarks.tables import formats, origins
    from contrastbench.benchmarks.tables.load import load
    from contrastbench.benchmarks.tables.resolved import resolve

    if all_ and (name or loss or selection or format_ != "md"):
        given = name or "--selection, --format and --loss"
        raise UserError(f"--all writes every table as it is: leave out {given} or --all")
    if all_:
        for path in formats.write_all(results):
            say(path)
    elif name is None:
        raise UserError("name a table (bench list tables) or give --all")
    else:
        joined = load(name, losses=parse_losses(loss or [], {}))
        resolved = resolve(joined, selection, results)
        show(formats.render(resolved, format_))
        tell_of_smoke_tests(joined, results)
        if line := origins.where_from(name, resolved):
            tell(line)


def tell_of_smoke_tests(table: "Table", results: Path) -> None:
    """Say how many results of a table's smoke test are left out."""
    if smoke := smoke_tests(table, results):
        tell(f"{smoke} records of --tiny are left out: a smoke test fills no table")


def smoke_tests(table: "Table", results: Path) -> int:
    """Return how many results of a table's smoke test there are."""
    from contrastbench.benchmarks.sweeps.plan import places

    small = table.model_copy(update={"tiny": True})
    experiments = {place.experiment.key: place.experiment for place in places(small)}
    return sum(1 for one in experiments.values() for _ in one.finished(results))


@one_moment()
def audit(
    name: opt.Table, selection: opt.Selection = None, results: opt.Results = Path("results")
) -> None:
    """Compare our protocol with the paper's, setting by setting.

    Each setting is the same, deviating, open in the paper, or not yet compared.

    Example: bench audit adnce-table5
    """
    from contrastbench.benchmarks.tables import audit
    from contrastbench.benchmarks.tables.load import load
    from contrastbench.benchmarks.tables.resolved import resolve

    show(audit.report(resolve(load(name), selection, results)))


@one_moment()
def compare(
    name: opt.Table,
    loss: opt.Join = None,
    baseline: Annotated[
        str | None, typer.Option(help="Row to compare with; default: the first with InfoNCE.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="Test: t or wilcoxon; default: wilcoxon over data sets, t on single ones."
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Largest corrected p-value of a win or a loss.")
    ] = 0.05,
    selection: opt.Selection = None,
    format_: Annotated[str, typer.Option("--format", help="Format: md, csv or latex.")] = "md",
    all_: Annotated[
        bool, typer.Option("--all", help="Show every test, its power, and the ranks as well.")
    ] = False,
    results: opt.Results = Path("results"),
) -> None:
    """Compare a table's rows with a baseline row.

    The output begins with controls, the effect of each row over data sets, and its verdict. A
    terminal shows at most 25 lines of its width; a file gets Markdown with all rows.

    Example: bench compare adnce-table5 --baseline ADNCE
    """
    from contrastbench.benchmarks.comparison import formats, screen
    from contrastbench.benchmarks.tables.load import load
    from contrastbench.benchmarks.tables.resolved import resolve

    joined = load(name, losses=parse_losses(loss or [], {}))
    tell_of_smoke_tests(joined, results)  # first, since without other records the rest is an error
    chosen = resolve(joined, selection, results)
    show(formats.render(chosen, format_, baseline, test, alpha, all_, screen.width()))
    for line in remarks_on(joined):
        tell(line)


def remarks_on(table: "Table") -> Iterator[str]:
    """Yield which of a table's own losses were never checked, or decline laws."""
    specs = {row.loss: LossSpec(row.loss, row.params) for row in table.rows if row.loss}
    for name, spec in specs.items():
        yield from checked.remarks(name, spec.code)


@one_moment()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tables or YAML files; default: all with records.")
    ] = None,
    output: Annotated[Path, typer.Option(help="File of the page.")] = Path("report.html"),
    plots: Annotated[
        Path | None, typer.Option(help="Folder for the page's plots, as SVG and PDF.")
    ] = None,
    results: opt.Results = Path("results"),
) -> None:
    """Write tables, comparisons and plots into one HTML page.

    The page needs no network and links the records behind each number.

    Example: bench report --output report.html --plots plots
    """
    from contrastbench.benchmarks import report

    say(report.write(names or [], results, output, plots))
