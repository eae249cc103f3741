"""`bench analyse`: what the words of its commands mean. Brings no torch until they are checked."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrastbench.benchmarks.analyses.output import prepare
from contrastbench.benchmarks.cli.arguments import (
    DataRoot,
    Results,
    check_data_root,
    parse_grid,
    parse_losses,
    parse_numbers,
    parse_pairs,
    parse_seeds,
)
from contrastbench.losses.errors import UserError

if TYPE_CHECKING:
    from contrastbench.benchmarks.analyses.laboratory import Laboratory
    from contrastbench.benchmarks.tables.sweep_file import Method

app = typer.Typer(
    help="What papers show beside tables; each writes a CSV and a plot.", no_args_is_help=True
)

Domain = Annotated[str, typer.Option(help="What kind of data; see `bench list domains`.")]
Dataset = Annotated[str | None, typer.Option(help="Default: the domain's embedded one.")]
Losses = Annotated[
    list[str], typer.Option(help="A loss, or loss(KEY=VALUE, ...); repeat it for more.")
]
Loss = Annotated[str, typer.Option(help="A registered loss, or file.py:Class.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE for every loss that has it, e.g. mu=0.7."),
]
Recipe = Annotated[
    list[str] | None, typer.Option(help="KEY=VALUE for the training, e.g. epochs=20.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Of the data split, the weights and the views.")
]
Tiny = Annotated[bool, typer.Option("--tiny", help="A smoke test on a tiny subset.")]
Device = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1, ... or auto: CUDA where there is one.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="CPU threads; default: what suits the domain.")
]
Out = Annotated[
    Path | None, typer.Option(help="Default: results/analyses/ANALYSIS-DOMAIN-DATASET.")
]


@app.command()
def scores(
    domain: Domain,
    loss: Losses,
    dataset: Dataset = None,
    set_: Set = None,
    recipe: Recipe = None,
    seed: Seed = 0,
    tiny: Tiny = False,
    data_root: DataRoot = None,
    device: Device = "auto",
    threads: Threads = None,
    out: Out = None,
) -> None:
    """Mean and variance of the negatives' cosines and mean of the positives', at every step (ADNCE, Figure 2).

    Example: bench analyse scores --domain image --loss "infonce(temperature=0.2)" --loss
    "infonce(temperature=0.8)"
    """
    methods = losses(loss, set_)
    dataset = check(domain, dataset, data_root)
    folder = prepare(out, "scores", domain, dataset)
    laboratory = open_(domain, dataset, recipe, seed, tiny, data_root, device, threads)
    from contrastbench.benchmarks.analyses.scores import analyse

    show(analyse(laboratory, methods, folder))


@app.command("false-negatives")
def false_negatives(
    domain: Domain,
    loss: Loss,
    dataset: Dataset = None,
    kept: Annotated[
        str, typer.Option(help="Shares r of the false negatives that are kept.")
    ] = "0,0.5,1",
    temperatures: Annotated[str, typer.Option(help="The grid of tau.")] = "0.2,0.4,0.6,0.8,1.0",
    set_: Set = None,
    recipe: Recipe = None,
    seed: Seed = 0,
    tiny: Tiny = False,
    data_root: DataRoot = None,
    device: Device = "auto",
    threads: Threads = None,
    out: Out = None,
) -> None:
    """Score and weight of false negatives against the temperature, with a share r of them kept (ADNCE, Figure 1).

    It trains once for each share and temperature. Example: bench analyse false-negatives --domain
    graph --loss infonce
    """
    shares, taus = (
        parse_numbers("--kept", kept, high=1),
        parse_numbers("--temperatures", temperatures),
    )
    (method,) = losses([loss], set_)
    if "temperature" in method.params:
        raise UserError("the temperature is --temperatures: leave it out of the loss")
    dataset = check(domain, dataset, data_root)
    folder = prepare(out, "false-negatives", domain, dataset)
    laboratory = open_(domain, dataset, recipe, seed, tiny, data_root, device, threads)
    from contrastbench.benchmarks.analyses.false_negatives import analyse

    show(analyse(laboratory, method, shares, taus, folder))


@app.command()
def tsne(
    domain: Domain,
    loss: Losses,
    dataset: Dataset = None,
    points: Annotated[int, typer.Option(min=5, help="At most so many samples.")] = 2000,
    set_: Set = None,
    recipe: Recipe = None,
    seed: Seed = 0,
    tiny: Tiny = False,
    data_root: DataRoot = None,
    device: Device = "auto",
    threads: Threads = None,
    out: Out = None,
) -> None:
    """Embeddings of the scored samples by the untrained and the trained encoders, by class (AttentionNCE, Figure 4).

    Example: bench analyse tsne --domain image --loss infonce --loss adnce
    """
    methods = losses(loss, set_)
    dataset = check(domain, dataset, data_root)
    folder = prepare(out, "tsne", domain, dataset)
    laboratory = open_(domain, dataset, recipe, seed, tiny, data_root, device, threads)
    from contrastbench.benchmarks.analyses.tsne import analyse

    show(analyse(laboratory, methods, points, folder))


@app.command()
def heatmap(
    domain: Domain,
    loss: Loss,
    grid: Annotated[list[str], typer.Option(help="KEY=V1,V2,... of the loss; give two.")],
    dataset: Dataset = None,
    seeds: Annotated[str, typer.Option(help="0-4 or 0,2,5: whose records are averaged.")] = "0",
    set_: Set = None,
    recipe: Recipe = None,
    tiny: Tiny = False,
    results: Results = Path("results"),
    out: Out = None,
) -> None:
    """The main metric over two parameters of a loss, from records alone (AttentionNCE, Figure 5).

    What is missing is said, with the `bench sweep` line that runs it.
    Example: bench analyse heatmap --domain image --loss attentionnce --grid d_pos=1,4,10 --grid
    d_neg=1,4,10
    """
    values, numbers = parse_grid(grid), parse_seeds(seeds)
    (method,) = losses([loss], set_)
    dataset = check(domain, dataset, None)
    folder = prepare(out, "heatmap", domain, dataset, method.loss)
    from contrastbench.benchmarks.analyses.heatmap import analyse
    from contrastbench.benchmarks.records.experiment import Experiment

    work = Experiment(domain, dataset, method.loss, method.params, changes(domain, recipe, tiny))
    show(analyse(work, values, numbers, results, folder))


def losses(texts: Sequence[str], set_: Iterable[str] | None) -> "list[Method]":
    """The losses with their parameters; the untrained encoder is none of them."""
    from contrastbench.benchmarks.tables.sweep_file import Method

    if "none" in texts:
        raise UserError("--loss none trains nothing: name a loss (bench list losses)")
    return [Method(*loss) for loss in parse_losses(texts, parse_pairs("--set", set_))]


def check(domain: str, dataset: str | None, data_root: Path | None) -> str:
    """The dataset, after a look at what can be wrong before torch is imported."""
    from contrastbench.domains.registry import check_domain, declaration

    check_domain(domain)
    check_data_root(data_root)
    return dataset or declaration(domain).default


def changes(domain: str, recipe: Iterable[str] | None, tiny: bool) -> dict[str, Any]:
    """Recipe values in place of the defaults."""
    from contrastbench.domains.registry import declaration

    return {**(declaration(domain).tiny if tiny else {}), **parse_pairs("--recipe", recipe)}


def open_(
    domain: str,
    dataset: str,
    recipe: Iterable[str] | None,
    seed: int,
    tiny: bool,
    data_root: Path | None,
    device: str,
    threads: int | None,
) -> "Laboratory":
    """Where the losses are trained."""
    values = changes(domain, recipe, tiny)
    from contrastbench.benchmarks.analyses.laboratory import open_laboratory
    from contrastbench.benchmarks.running.environment import choose_device

    return open_laboratory(domain, dataset, values, seed, data_root, choose_device(device), threads)


def show(found: Iterable[Path | str]) -> None:
    """A line for each."""
    try:
        for line in found:
            typer.echo(line)
    except KeyboardInterrupt:
        typer.echo("interrupted: nothing was written", err=True)
        raise typer.Exit(130) from None
