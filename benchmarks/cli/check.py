"""`bench check-loss` and `check-domain`: the batteries on somebody's own loss or domain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import check_data_root, parse_pairs

if TYPE_CHECKING:
    from contrastbench.losses.laws import CheckResult


def check_loss(
    loss: Annotated[str, typer.Argument(help="my_loss.py:MyLoss, a registered name, or a sum.")],
    set_: opt.Set = None,
) -> None:
    """The checks that every registered loss passes, on your own."""
    from contrastbench.losses.laws import check_loss

    show(check_loss(loss, **parse_pairs("--set", set_)))


def check_domain(
    name: Annotated[str, typer.Argument(help="A domain of ours, or of a package of yours.")],
    dataset: opt.Dataset = None,
    recipe: opt.Recipe = None,
    data_root: opt.DataRoot = None,
) -> None:
    """The checks that every domain of ours passes, on your own.

    Repeatable, resumable, true to its data.
    """
    from contrastbench.benchmarks.running.domain_laws import check_domain

    check_data_root(data_root)
    show(check_domain(name, dataset, parse_pairs("--recipe", recipe), data_root))


def show(results: "Sequence[CheckResult]") -> None:
    """A line for each check; exit code 1 if one failed."""
    for result in results:
        typer.echo(f"{'pass' if result.passed else 'FAIL'}  {result.name:16} {result.detail}")
    passed = sum(result.passed for result in results)
    typer.echo(f"{passed} of {len(results)} checks passed")
    if passed < len(results):
        raise typer.Exit(1)
