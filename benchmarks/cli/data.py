"""`bench list`, `data` and `doctor`: what there is."""

from collections.abc import Iterator
from typing import Annotated

import typer

from contrastbench.losses.errors import UserError, unknown

ACTIONS = ("list", "fetch", "verify")


def list_(
    what: Annotated[str, typer.Argument(help="losses, domains, datasets, recipes or tables.")],
    domain: Annotated[str | None, typer.Argument(help="Recipes of this domain alone.")] = None,
) -> None:
    """What there is to choose from.

    Example: bench list recipes graph
    """
    from contrastbench.benchmarks.cli import listing

    lists = {
        "losses": listing.losses,
        "domains": listing.domains,
        "datasets": listing.datasets,
        "recipes": lambda: listing.recipes(domain),
        "tables": listing.tables,
    }
    if what not in lists:
        raise unknown("list", what, lists)
    if domain and what != "recipes":
        raise UserError(f"bench list {what} is of all domains: leave {domain} out")
    for line in lists[what]():
        typer.echo(line)


def data(
    action: Annotated[str, typer.Argument(help="list, fetch or verify.")],
    name: Annotated[
        str | None, typer.Argument(help="A dataset; verify takes all without one.")
    ] = None,
) -> None:
    """Datasets and their downloads.

    Example: bench data fetch MUTAG
    """
    damaged = False
    for line in lines(action, name):
        typer.echo(line)
        damaged |= action == "verify" and "DAMAGED" in line
    if damaged:
        raise typer.Exit(1)


def lines(action: str, name: str | None) -> Iterator[str]:
    """What an action prints."""
    from contrastbench.benchmarks.cli import listing
    from contrastbench.domains.download import fetch, state
    from contrastbench.domains.registry import known_data

    known = known_data()
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if name is not None and name not in known:
        raise unknown("dataset", name, known)
    if action == "list":
        yield from listing.data()
    elif action == "verify":
        chosen = [known[name]] if name else known.values()
        yield from (f"{dataset.name:16} {state(dataset)}" for dataset in chosen)
    elif name is None or not known[name].url:
        raise UserError(f"{name or 'fetch'}: name a dataset that is downloaded (bench data list)")
    else:
        yield str(fetch(known[name]))


def doctor() -> None:
    """Versions, devices, what is missing and the line that adds it.

    Example: bench doctor
    """
    from contrastbench.benchmarks.cli.doctor import report

    for line in report():
        typer.echo(line)
