"""Commands of `bench analyse`; torch is imported only after their options are checked."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrastbench.benchmarks.analyses.output import prepare
from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import (
    make_experiment,
    parse_grid,
    parse_list,
    parse_losses,
    parse_numbers,
    parse_pairs,
)
from contrastbench.benchmarks.cli.loading import loading
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.domains.registry import check_needs
from contrastbench.errors import UserError, tell
from contrastbench.losses.spec import LossSpec

if TYPE_CHECKING:
    from contrastbench.benchmarks.analyses.laboratory import Laboratory

app = typer.Typer(
    help="Compute a paper's analysis, as a CSV file and a plot.", no_args_is_help=True
)

Losses = Annotated[list[str], typer.Option(help="Loss, or loss(KEY=VALUE, ...); may repeat.")]
Loss = Annotated[str, typer.Option(help="Registered loss, or file.py:Class.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Parameter of every loss that has it, such as mu=0.7."),
]
Seed = Annotated[
    int,
    typer.Option(min=0, max=2**32 - 1, help="Seed of the data split, the weights and the views."),
]
Out = Annotated[
    Path | None, typer.Option(help="Folder; default: results/analyses/ANALYSIS-DOMAIN-DATASET.")
]

Words = tuple[str, str | None, list[str] | None, bool]  # domain, dataset, recipe and tiny
ESTIMATORS = [f"{name}(alpha=0.0078125)" for name in ("cpc", "mlcpc", "rmlcpc", "nwj")]
ALIGNED = [  # DASL's, with and without its regularisation
    "npair(similarity=distance, temperature=0.2)",
    "npair + 0.5*dar(npair.similarity=distance, npair.temperature=0.2)",
]
MOST_NEIGHBOURS = 1000  # the points of a cluster


@app.command()
def scores(
    domain: opt.Domain,
    loss: Losses,
    dataset: opt.Dataset = None,
    set_: Set = None,
    recipe: opt.Recipe = None,
    seed: Seed = 0,
    tiny: opt.Tiny = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Measure cosines during training (ADNCE, Figure 2).

    These are mean and variance over negatives, and mean over positives.

    Example: bench analyse scores --domain image --loss "infonce(temperature=0.2)" --loss
    "infonce(temperature=0.8)"
    """
    methods = losses(loss, set_)
    options = Options(Path("results"), data_root, device, threads)
    laboratory, folder = begin("scores", (domain, dataset, recipe, tiny), seed, out, options)
    from contrastbench.benchmarks.analyses.scores import analyse

    show(analyse(laboratory, methods, folder))


@app.command("false-negatives")
def false_negatives(
    domain: opt.Domain,
    loss: Loss,
    dataset: opt.Dataset = None,
    kept: Annotated[
        str, typer.Option(help="Shares of the false negatives that are kept.")
    ] = "0,0.5,1",
    temperatures: Annotated[
        str, typer.Option(help="Temperatures to train with.")
    ] = "0.2,0.4,0.6,0.8,1.0",
    set_: Set = None,
    recipe: opt.Recipe = None,
    seed: Seed = 0,
    tiny: opt.Tiny = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Measure weights of false negatives (ADNCE, Figure 1).

    The analysis keeps a share of the false negatives, and trains once for each share and
    temperature. It measures their scores and weights against the temperature.

    Example: bench analyse false-negatives --domain graph --loss infonce
    """
    shares, taus = (
        parse_numbers("--kept", kept, high=1),
        parse_numbers("--temperatures", temperatures),
    )
    (method,) = losses([loss], set_)
    if "temperature" in method.params:
        raise UserError("the temperature is given by --temperatures: leave it out of the loss")
    options = Options(Path("results"), data_root, device, threads)
    laboratory, folder = begin(
        "false-negatives", (domain, dataset, recipe, tiny), seed, out, options
    )
    from contrastbench.benchmarks.analyses.false_negatives import analyse

    show(analyse(laboratory, method, shares, taus, folder))


@app.command()
def tsne(
    domain: opt.Domain,
    loss: Losses,
    dataset: opt.Dataset = None,
    points: Annotated[int, typer.Option(min=5, help="Largest number of samples.")] = 2000,
    set_: Set = None,
    recipe: opt.Recipe = None,
    seed: Seed = 0,
    tiny: opt.Tiny = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Plot embeddings by class (AttentionNCE, Figure 4).

    These are the embeddings of the scored samples, before and after the training.

    Example: bench analyse tsne --domain image --loss infonce --loss adnce
    """
    methods = losses(loss, set_)
    options = Options(Path("results"), data_root, device, threads)
    laboratory, folder = begin("tsne", (domain, dataset, recipe, tiny), seed, out, options)
    from contrastbench.benchmarks.analyses.tsne import analyse

    show(analyse(laboratory, methods, points, folder))


@app.command()
def heatmap(
    domain: opt.Domain,
    loss: Loss,
    grid: Annotated[list[str], typer.Option(help="Parameter with values KEY=V1,V2,...; give two.")],
    dataset: opt.Dataset = None,
    seeds: Annotated[
        str, typer.Option("--seeds", "--seed", help="Seeds to average, such as 0-4 or 0,2,5.")
    ] = "0",
    set_: Set = None,
    recipe: opt.Recipe = None,
    tiny: opt.Tiny = False,
    results: opt.Results = Path("results"),
    out: Out = None,
) -> None:
    """Plot a grid of two parameters (AttentionNCE, Figure 5).

    The main metric is read from records. For missing ones the `bench sweep` line is shown.

    Example: bench analyse heatmap --domain image --loss attentionnce --grid d_pos=1,4,10 --grid
    d_neg=1,4,10
    """
    values, numbers = parse_grid(grid), parse_seeds(seeds)
    (method,) = losses([loss], set_)
    experiment = make_experiment(domain, dataset, method, recipe, tiny)
    folder = prepare(out, "heatmap", domain, experiment.dataset, method.name)
    from contrastbench.benchmarks.analyses.heatmap import analyse

    show(analyse(experiment, values, numbers, results, folder))


@app.command()
def terms(
    domain: opt.Domain,
    loss: Losses,
    dataset: opt.Dataset = None,
    set_: Set = None,
    recipe: opt.Recipe = None,
    seed: Seed = 0,
    tiny: opt.Tiny = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Plot each term of a loss by step (DASL, Figure 8).

    Every term is measured in the training of every loss.

    Example: bench analyse terms --domain image --loss infonce --loss "infonce + 0.5*dar"
    """
    methods = losses(loss, set_)
    options = Options(Path("results"), data_root, device, threads)
    laboratory, folder = begin("terms", (domain, dataset, recipe, tiny), seed, out, options)
    from contrastbench.benchmarks.analyses.terms import analyse

    show(analyse(laboratory, methods, folder))


@app.command("learning-curve")
def learning_curve(
    domain: opt.Domain,
    loss: Losses,
    dataset: opt.Dataset = None,
    every: Annotated[int, typer.Option(min=1, help="Number of epochs between two scores.")] = 1,
    seeds: Annotated[
        str, typer.Option("--seeds", "--seed", help="Seeds, such as 0-4 or 0,2,5.")
    ] = "0",
    set_: Set = None,
    recipe: opt.Recipe = None,
    tiny: opt.Tiny = False,
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Plot the score by epoch over seeds (ADNCE, Figure 4).

    The plot shows mean and standard deviation. Cells that `bench run` has recorded are not trained
    again.

    Example: bench analyse learning-curve --domain image --loss infonce --loss adnce --every 5
    """
    methods, numbers = losses(loss, set_), parse_seeds(seeds)
    check_data_root(data_root)
    experiment = make_experiment(domain, dataset, LossSpec("none"), recipe, tiny)
    _ = experiment.full_recipe  # mistakes are named before torch is imported
    check_needs(domain)
    folder = prepare(out, "learning-curve", domain, experiment.dataset)
    with loading():
        from contrastbench.benchmarks.analyses.learning_curve import analyse

    options = Options(results, data_root, device, threads)
    kept = f"trainings that came to their end are kept under {results}, the rest comes next time"
    show(analyse(experiment, methods, every, numbers, options, folder), kept)


@app.command()
def weights(loss: Losses, set_: Set = None, out: Out = None) -> None:
    """Plot gradient weights by score (ADNCE, Figure 3).

    These are the weights that the gradient puts on negatives and on positives.

    Example: bench analyse weights --loss "infonce(temperature=0.2)" --loss "adnce(mu=0.7)"
    """
    methods = losses(loss, set_)
    folder = prepare(out, "weights")
    with loading():
        from contrastbench.benchmarks.analyses.weights import analyse

    show(analyse(methods, folder))


@app.command()
def consistency(
    loss: Losses = ALIGNED,
    neighbours: Annotated[
        str, typer.Option(help="Numbers of neighbours of the classifiers; the paper names none.")
    ] = ("1,3,5,15"),
    seeds: Annotated[
        str, typer.Option("--seeds", "--seed", help="Seeds, such as 0-4 or 0,2,5.")
    ] = "0-4",
    set_: Set = None,
    tiny: opt.Tiny = False,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Embed and classify three Gaussians (DASL, Table 7).

    The differences between their means are alike or not.

    Example: bench analyse consistency --loss infonce --loss "infonce + 0.5*dar"
    """
    methods, numbers = losses(loss, set_), parse_seeds(seeds)
    counts = parse_list("--neighbours", neighbours)
    if not all(type(k) is int and 1 <= k <= MOST_NEIGHBOURS for k in counts):
        raise UserError(f"--neighbours {neighbours!r}: give numbers from 1 to {MOST_NEIGHBOURS}")
    folder = prepare(out, "consistency")
    with loading():
        from contrastbench.benchmarks.analyses import consistency as clusters
    study = clusters.Study(counts, numbers, 1 if tiny else clusters.EPOCHS)
    show(clusters.analyse(methods, study, Options(device=device, threads=threads), folder))


@app.command("mutual-information")
def mutual_information(
    loss: Annotated[
        list[str], typer.Option(help="Loss that bounds a divergence, or loss(KEY=VALUE, ...).")
    ] = ESTIMATORS,
    critic: Annotated[
        str, typer.Option(help="Critic: separable, joint (the paper's), or both.")
    ] = ("separable"),
    information: Annotated[str, typer.Option(help="True information in nats, in this order.")] = (
        "2,4,6,8,10"
    ),
    steps: Annotated[
        int, typer.Option(min=2, help="Number of training steps at each information.")
    ] = 4000,
    of_views: Annotated[
        bool,
        typer.Option("--of-views", help="Estimate it between the views of a domain's training."),
    ] = False,
    domain: Annotated[
        str | None, typer.Option(help="Domain of the views, with --of-views.")
    ] = None,
    dataset: opt.Dataset = None,
    set_: Set = None,
    recipe: opt.Recipe = None,
    seed: Seed = 0,
    tiny: opt.Tiny = False,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    threads: opt.Threads = None,
    out: Out = None,
) -> None:
    """Estimate mutual information (RényiCL, Figures 1 and 2).

    The losses estimate it for Gaussians, where it is known; or with --of-views in the training of a
    domain, beside the score.

    Example: bench analyse mutual-information --loss "mlcpc(alpha=0.01)" --loss dv

    Example: bench analyse mutual-information --of-views --domain image --loss cpc --loss rmlcpc
    """
    methods = losses(loss, set_)
    if domain is None or not of_views:
        if of_views or domain or dataset or recipe:
            raise UserError(
                "give --of-views and --domain together, and then --dataset or --recipe if you like"
            )
        kinds, levels = parse_list("--critic", critic), parse_numbers("--information", information)
        folder = prepare(out, "mutual-information")
        with loading():
            from contrastbench.benchmarks.analyses import mutual_information as gaussians
        study = gaussians.Study(kinds, levels, 4 if tiny else steps, seed)
        show(gaussians.analyse(methods, study, Options(device=device, threads=threads), folder))
        return
    options = Options(Path("results"), data_root, device, threads)
    laboratory, folder = begin(
        "information-of-views", (domain, dataset, recipe, tiny), seed, out, options
    )
    from contrastbench.benchmarks.analyses.views import analyse

    show(analyse(laboratory, methods, folder))


def losses(texts: Sequence[str], set_: Iterable[str] | None) -> list[LossSpec]:
    """Return the losses with their parameters; refuse `none`, which trains nothing."""
    if "none" in texts:
        raise UserError("--loss none trains nothing: name another loss (bench list losses)")
    return parse_losses(texts, parse_pairs("--set", set_))


def begin(
    analysis: str, words: Words, seed: int, out: Path | None, options: Options
) -> tuple["Laboratory", Path]:
    """Open the domain in which the losses are trained, and make the folder of the results."""
    check_data_root(options.data_root)
    domain, dataset, recipe, tiny = words
    experiment = make_experiment(domain, dataset, LossSpec("none"), recipe, tiny)
    folder = prepare(out, analysis, domain, experiment.dataset)
    _ = experiment.full_recipe  # mistakes are named before torch is imported
    check_needs(domain)
    with loading():
        from contrastbench.benchmarks.analyses.laboratory import open_laboratory

    return open_laboratory(experiment, seed, options), folder


def show(found: Iterable[Path | str], kept: str = "nothing was written") -> None:
    """Print a line for each result; on Ctrl-C say what is kept."""
    try:
        for line in found:
            say(line)
    except KeyboardInterrupt:
        tell(f"interrupted: {kept}")
        raise SystemExit(130) from None  # main has more to say of typer's own exit
