"""Command `bench list`, which imports only what a list needs."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

from typer import Argument

from contrastbench.benchmarks.cli.output import show
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.errors import UserError, check_known

LISTS = {  # module, its function, and what that takes; what they import decides their time
    "losses": ("loss_list", "loss_lines", ""),
    "families": ("loss_list", "families", ""),
    "domains": ("listing", "domain_lines", ""),
    "datasets": ("listing", "dataset_lines", "domain"),
    "recipes": ("listing", "recipes", "domain"),
    "tables": ("table_list", "table_lines", "results"),
}


@one_moment()
def list_(
    what: str,
    domain: Annotated[str | None, Argument()] = None,
    results: Path | None = None,
) -> None:
    """List losses, families, domains, datasets, recipes or tables.

    Args:
        what: List: losses, families, domains, datasets, recipes or tables.
        domain: Domain whose datasets or recipes are listed.
        results: Folder that holds runs/, to say what is done of each table; results if it is there.

    Example: bench list recipes graph
    Example: bench list tables
    """
    check_known("list", what, LISTS)
    module, function, argument = LISTS[what]
    if domain and argument != "domain":
        raise UserError(f"bench list {what} takes no domain: leave {domain} out")
    if results and argument != "results":
        raise UserError(f"bench list {what} reads no records: leave --results out")
    lines = getattr(import_module(f"contrastbench.benchmarks.cli.{module}"), function)
    given = {"domain": domain, "results": results}
    for line in lines(given[argument]) if argument else lines():
        show(line)
