"""Commands of `bench suite`: how a standing comparison comes to its data sets."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import show
from contrastbench.benchmarks.comparison.admission import SEEDS
from contrastbench.errors import UserError, tell, unknown

app = typer.Typer(help="Choose the data sets of a standing comparison.")
FORMATS = ("md", "csv")


@app.callback(invoke_without_command=True)  # typer would make a single command the whole group
def suite(context: typer.Context) -> None:
    """Choose the data sets of a standing comparison."""
    if context.invoked_subcommand is None:
        show(context.get_help())


def admit(
    file: Annotated[str, typer.Argument(help="Sweep file of candidates, with controls: true.")],
    run: Annotated[
        bool, typer.Option("--run", help="Run the missing cells first, as bench sweep does.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes of --run.")] = 1,
    only: opt.Only = None,
    seeds: Annotated[str, typer.Option(help="Seeds that no comparison uses.")] = SEEDS,
    format_: Annotated[str, typer.Option("--format", help="Format: md or csv.")] = "md",
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
) -> None:
    """Admit the data sets that can tell losses apart, by a rule.

    A set is admitted where InfoNCE is clearly above raw input and untrained encoder, and classes
    would add something to it. Records alone decide, so a verdict can be repeated.

    Example: bench suite admit candidates.yaml --run --jobs 2 --only dataset=letter
    """
    from contrastbench.benchmarks.comparison.admission import candidates, report, rows_of
    from contrastbench.benchmarks.records.moment import one_moment
    from contrastbench.benchmarks.sweeps.plan import make_plan

    if format_ not in FORMATS:
        raise unknown("format", format_, FORMATS)
    if any(pair.partition("=")[0].strip() in ("row", "loss") for pair in only or []):
        raise UserError("--only of admit takes dataset, column or domain: every row is judged")
    plan = make_plan(file, only or [], seeds, False, None, results, run, [])
    rows = {row.name for row in rows_of(plan.table).values()}
    places = [place for place in plan.places if place.row.name in rows]
    if run:
        from contrastbench.benchmarks.running.options import Options, check_data_root
        from contrastbench.benchmarks.sweeps import sweep

        check_data_root(data_root)
        needed = replace(plan, places=places)
        for text, _ in sweep.run(needed, Options(results, data_root, device), jobs, False, None):
            tell(text)
    columns = {place.column: plan.table.columns[place.column] for place in places}
    with one_moment():
        chosen = plan.table.model_copy(update={"columns": columns})
        show(report([*candidates(chosen, plan.seeds, results)], format_))
