"""Commands of `bench suite`: which data sets a standing comparison has, and whether it can see."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import show
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS
from contrastbench.errors import UserError, tell, unknown

app = typer.Typer(
    help="Choose the data sets of a standing comparison, or check it.", invoke_without_command=True
)
SUITE_FORMATS = ("md", "csv")
Format = Annotated[str, typer.Option("--format", help="Format: md or csv.")]


@app.callback()
def start(context: typer.Context) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        show(context.get_help())


def admit(
    file: Annotated[str, typer.Argument(help="Sweep file of candidates, with controls.")],
    run: Annotated[
        bool, typer.Option("--run", help="Run the missing cells first, as bench sweep does.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes of --run.")] = 1,
    only: opt.Only = None,
    seeds: Annotated[str, typer.Option(help="Seeds that no comparison uses.")] = ADMISSION_SEEDS,
    format_: Format = "md",
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
) -> None:
    """Admit the data sets that can tell losses apart, by a rule.

    A set is admitted where InfoNCE is clearly above raw input and untrained encoder, classes would
    add something to it, and a bad temperature shows. Records alone decide, so a verdict can be
    repeated.

    Example: bench suite admit candidates.yaml --run --jobs 2 --only dataset=letter
    """
    from contrastbench.benchmarks.comparison.admission import admission_table, candidates, rule_rows
    from contrastbench.benchmarks.records.read_cache import one_moment
    from contrastbench.benchmarks.sweeps.plan import make_plan

    check_format(format_)
    if any(pair.partition("=")[0].strip() in ("row", "loss") for pair in only or []):
        raise UserError("--only of admit takes dataset, column or domain: every row is judged")
    plan = make_plan(file, only or [], seeds, False, None, results, run, [])
    rows = {row.name for row in rule_rows(plan.table).values()}
    places = [place for place in plan.places if place.row.name in rows]
    if run:
        from contrastbench.benchmarks.running.options import Options, check_data_root
        from contrastbench.benchmarks.sweeps import sweep

        check_data_root(data_root)
        needed = replace(plan, places=places)
        for text, _ in sweep.run_plan(
            needed, Options(results, data_root, device), jobs, False, None
        ):
            tell(text)
    asked = {place.column for place in places}
    with one_moment():
        found = candidates(plan.table, plan.seeds, results)
        show(admission_table([one for one in found if one.name in asked], format_))


def gate(name: opt.Table, format_: Format = "md", results: opt.Results = Path("results")) -> None:
    """Check by its controls whether a suite can tell losses apart.

    Raw input, untrained encoder, permuted positives and temperature 5 must be worse than InfoNCE on
    90 % of the sets, and half the epochs below it on 80 %. Exit code 1: the gate is closed.

    Example: bench suite gate standard
    """
    from contrastbench.benchmarks.comparison.gate import conditions, gate_report, is_open
    from contrastbench.benchmarks.records.read_cache import one_moment
    from contrastbench.benchmarks.tables.load import load_table
    from contrastbench.benchmarks.tables.resolved import resolve

    check_format(format_)
    with one_moment():
        table = load_table(name)
        found = conditions(resolve(table, None, results))
    show(gate_report(table.name, found, format_))
    if not is_open(found):
        raise typer.Exit(1)


def check_format(name: str) -> None:
    """Raise unless there is such a format."""
    if name not in SUITE_FORMATS:
        raise unknown("format", name, SUITE_FORMATS)
