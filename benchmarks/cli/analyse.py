"""The command `bench analyse`; torch is imported only after its options are checked."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from contrastbench.benchmarks.analyses.declaration import Analysis, Work
from contrastbench.benchmarks.analyses.output import prepare_folder
from contrastbench.benchmarks.analyses.registry import ANALYSES
from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.arguments import parse_list, parse_losses, parse_pairs
from contrastbench.benchmarks.cli.once import OnceCommand
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.records.command import parse_value
from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.running.options import Options, check_data_root
from contrastbench.domains.registry import check_needs
from contrastbench.errors import UserError, unknown
from contrastbench.losses.spec import LossSpec

WORDS_KEY = "contrastbench.analyse.words"
ALL_TAKE = {"name", "loss", "with_", "output", "help"}


class Command(OnceCommand):
    """The help lists all analyses, and that of one analysis its options and parameters."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words: --help ends the reading before the analysis has been read."""
        ctx.meta[WORDS_KEY] = args[:]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the analysis that is named, or of all."""
        ctx.params["name"] = next((word for word in ctx.meta[WORDS_KEY] if word in ANALYSES), "")
        super().format_help(ctx, formatter)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; when help is written for one analysis, those that it takes.

        Before, when the words are read, `ctx.params` is empty and all options are known.
        """
        about = ANALYSES.get(ctx.params.get("name", ""))
        found: list[Any] = super().get_params(ctx)
        return [p for p in found if not about or p.name in {*ALL_TAKE, *about.options}]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the analysis is and its parameters, or the list of analyses."""
        name = ctx.params.get("name", "")
        if name not in ANALYSES:
            super().format_help_text(ctx, formatter)
            with formatter.section("Analyses"):
                formatter.write_dl([(key, about.summary) for key, about in ANALYSES.items()])
            return
        about = ANALYSES[name]
        for text in (about.summary, about.about):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
        if rows := [*parameter_rows(about)]:
            with formatter.section("Values of --with"):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write each example of the analysis on a line of its own."""
        if about := ANALYSES.get(ctx.params.get("name", "")):
            self.epilog = opt.examples(about.examples)
        super().format_epilog(ctx, formatter)


def parameter_rows(about: Analysis) -> Iterator[tuple[str, str]]:
    """Yield each parameter of --with with its default, and its meaning with its range."""
    for key, parameter in about.parameters.items():
        default = parameter.default if parameter.several else (parameter.default,)
        text = ",".join(value if isinstance(value, str) else f"{value:g}" for value in default)
        yield f"{key}={text}", f"{parameter.help.rstrip('.')}: {parameter}."


def analyse(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="Analysis (bench analyse --help lists them).",
            autocompletion=lambda incomplete: [k for k in ANALYSES if k.startswith(incomplete)],
        ),
    ],
    domain: Annotated[str | None, typer.Option(help=opt.DOMAIN_HELP)] = None,
    dataset: opt.Dataset = None,
    loss: Annotated[
        list[str] | None, typer.Option(help="Loss, or loss(KEY=VALUE, ...); may repeat.")
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Parameter of the analysis as KEY=VALUE; may repeat.",
        ),
    ] = None,
    recipe: opt.Recipe = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", "--seed", help="Seed; or several, such as 0-4 or 0,2.")
    ] = None,
    tiny: opt.Tiny = False,
    results: opt.Results = Path("results"),
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
    output: Annotated[
        Path | None,
        typer.Option(help="Folder; default: results/analyses/ANALYSIS-DOMAIN-DATASET."),
    ] = None,
) -> None:
    """Compute a paper's analysis, as a CSV file and a plot.

    An analysis has parameters of its own, which its help lists: bench analyse NAME --help.

    Example: bench analyse scores --help
    Example: bench analyse terms --domain image --loss infonce --loss "infonce + 0.5*dar"
    """
    if name not in ANALYSES:
        raise unknown("analysis", name, ANALYSES)
    about = ANALYSES[name]
    refuse_others(context, name, about)
    losses = read_losses(name, about, loss or [])
    values = read_values(name, about, with_ or [])
    numbers = read_seeds(name, about, seeds)
    options = Options(results, data_root, device)
    trained = read_experiment(name, about, losses[0], (domain, dataset, recipe, tiny), options)
    places = [trained.domain, trained.dataset] if trained else []
    folder = prepare_folder(output, results, name, *places)
    module = importlib.import_module(f"contrastbench.benchmarks.analyses.{name.replace('-', '_')}")
    work = Work(losses, numbers, values, options, folder, trained, tiny)
    for line in module.run(work):
        say(line)


def refuse_others(context: typer.Context, name: str, about: Analysis) -> None:
    """Raise for an option on the command line that this analysis does not take."""
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        typed = source is not None and source.name == "COMMANDLINE"
        if typed and param.name not in {*ALL_TAKE, *about.options}:
            raise UserError(f"bench analyse {name} takes no {param.opts[0]}: leave it out")


def read_losses(name: str, about: Analysis, texts: Sequence[str]) -> list[LossSpec]:
    """Return the losses with their parameters.

    Raises:
        UserError: a loss is missing, unknown, one too many, or `none`, which trains nothing.
    """
    if not (chosen := texts or about.losses):
        raise UserError(f"bench analyse {name} needs a loss: give --loss (bench list losses)")
    if "none" in chosen:
        raise UserError("--loss none trains nothing: name another loss (bench list losses)")
    if about.one_loss and len(chosen) > 1:
        raise UserError(f"bench analyse {name} takes one loss, got {len(chosen)}: give one --loss")
    return parse_losses(chosen)


def read_values(name: str, about: Analysis, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the values of --with by key, checked against the declared parameters.

    Raises:
        UserError: unknown key, wrong kind, or out of range.
    """
    values = {key: parameter.default for key, parameter in about.parameters.items()}
    for key, text in parse_pairs("--with", pairs, read=str).items():
        if key not in about.parameters:
            raise unknown(f"parameter of bench analyse {name}", key, about.parameters)
        parameter = about.parameters[key]
        if parameter.several:
            parts = parse_list(f"--with {key}", text)
            values[key] = tuple(parameter.check(key, part) for part in parts)
        else:
            values[key] = parameter.check(key, parse_value(text))
    return values


def read_seeds(name: str, about: Analysis, text: str | None) -> list[int]:
    """Return the seeds, of which some analyses take one alone."""
    seeds = parse_seeds(text or about.seeds)
    if about.one_seed and len(seeds) > 1:
        raise UserError(f"bench analyse {name} takes one seed, got --seeds {text}: give --seed N")
    return seeds


def read_experiment(
    name: str,
    about: Analysis,
    loss: LossSpec,
    words: tuple[str | None, str | None, list[str] | None, bool],
    options: Options,
) -> Experiment | None:
    """Return what is trained, checked as far as it can be without torch.

    Args:
        name: the analysis.
        about: its declaration.
        loss: what an analysis of one loss reads the records of.
        words: --domain, --dataset, --recipe and --tiny.
        options: --data-root among others.
    """
    domain, dataset, recipe, tiny = words
    if "domain" not in about.options:
        return None
    if domain is None:
        raise UserError(f"bench analyse {name} needs a domain: give --domain (bench list domains)")
    check_data_root(options.data_root)
    values = parse_pairs("--recipe", recipe)
    experiment = make_experiment(domain, dataset, LossSpec("none"), values, tiny)
    if "device" in about.options:  # it trains
        _ = experiment.full_recipe
        check_needs(domain)
    return experiment
