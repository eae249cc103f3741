"""Commands `bench table`, `audit`, `compare` and `report`, from records.

The report alone brings torch, for the formulas of losses.
"""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.options import parse_losses
from contrastbench.benchmarks.cli.output import say, show, width
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.report.tables import audit_markdown, render_table
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.errors import UserError, tell

Format = Annotated[str, Option("--format", help="Format: md, csv, json or latex.")]


@one_moment()
@opt.asking
def table(
    asked: opt.Numbers,
    name: Annotated[str | None, Argument()] = None,
    format_: Format = "md",
    values: str | None = None,
    all_: Annotated[bool, Option("--all")] = False,
) -> None:
    """Show a published table beside our numbers.

    Args:
        name: Table (bench list tables) or YAML file.
        values: Values in LaTeX: theirs, ours or both (default).
        all_: Write all tables, and those of YAML files in --results, there as md and csv.

    Example: bench table adnce-table5 --format latex
    """
    if all_ and (name or format_ != "md" or asked != opt.Numbers(results=asked.results)):
        given = name or "--selection, --metric, --format, --quick and --loss"
        raise UserError(f"--all writes every table as it is: leave out {given} or --all")
    if all_:
        from contrastbench.benchmarks.report.table_pages import write_tables  # brings numpy

        for path in write_tables(asked.results):
            say(path)
    elif name is None:
        raise UserError("name a table (bench list tables) or give --all")
    else:
        resolved = answered(name, asked)
        show(render_table(resolved, format_, values))
        for line in (*resolved.smoke_tests, *resolved.where_from(name)):
            tell(line)


def answered(name: str, asked: opt.Numbers) -> Resolved:
    table = load_table(name, losses=parse_losses(asked.loss), quick=asked.quick)
    return resolve(table, asked.selection, asked.results, asked.metric)


@one_moment()
def audit(name: str, results: Path = Path("results")) -> None:
    """Compare our protocol with the paper's, setting by setting.

    Each setting is the same, deviating, open in the paper, or not yet compared.

    Example: bench audit adnce-table5
    """
    resolved = resolve(load_table(name), None, results)
    show(audit_markdown(resolved))
    for line in resolved.where_from(name):
        tell(line)


@one_moment()
@opt.asking
def compare(
    asked: opt.Numbers,
    name: str,
    baseline: str | None = None,
    format_: Format = "md",
    all_: Annotated[bool, Option("--all")] = False,
) -> None:
    """Compare a table's rows with a baseline row.

    The output begins with the verdict on each --loss, then controls, and each row over data sets. A
    terminal shows as many columns as fit it; a file gets Markdown with all of them.

    Args:
        baseline: Row to compare with; default: the first with InfoNCE.
        all_: Show every test and its power as well.

    Example: bench compare adnce-table5 --baseline ADNCE
    """
    from contrastbench.benchmarks.report.comparison import render_comparison

    chosen = answered(name, asked)
    for line in chosen.smoke_tests:  # first, since without records the rest is an error
        tell(line)
    show(render_comparison(chosen, format_, baseline, all_, width()))


@one_moment()
def report(
    names: Annotated[list[str] | None, Argument()] = None,
    output: Annotated[Path | None, Option(show_default=False)] = None,
    single: Path | None = None,
    loss: list[str] | None = None,
    quick: opt.Quick = False,
    results: Path = Path("results"),
) -> None:
    """Write all tables and their records as pages in a folder.

    Open its index.html. The pages need no network, and any web server can serve them.

    Args:
        names: Tables or YAML files; default: all.
        output: Folder of the pages; default: report.
        single: Write all pages into this one file instead.

    Example: bench report my.yaml --single report.html
    """
    from contrastbench.benchmarks import report

    if output and single:
        raise UserError(f"--output {output} and --single {single}: give one of the two")
    if output and output.suffix in (".html", ".htm"):
        raise UserError(
            f"--output {output} names a file, but the report is a folder: give --output "
            f"{output.with_suffix('')}, or --single {output} for one file"
        )
    if single and not single.absolute().parent.is_dir():
        raise UserError(f"--single {single}: no folder {single.parent}: make it first")
    target, joining = single or output or Path("report"), parse_losses(loss)
    say(report.write_report(names or [], results, target, single is not None, joining, quick))
