"""`bench perf`: times and memory beside what people use today."""

import importlib
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.losses.errors import unknown

PARTS = ("losses", "graph", "image", "sentence", "tabular")  # each is a module of benchmarks.perf


def perf(
    part: Annotated[str, typer.Argument(help=f"{', '.join(PARTS)}.")],
    only: Annotated[
        str | None,
        typer.Option(help="Losses, datasets or encoders, by commas; default: a few."),
    ] = None,
    data_root: opt.DataRoot = None,
) -> None:
    """Times and ratios measured side by side in one run."""
    if part not in PARTS:
        raise unknown("benchmark", part, PARTS)
    module = importlib.import_module(f"contrastbench.benchmarks.perf.{part}")
    lines = module.report(only.split(",") if only else list(module.DEFAULT), data_root)
    first = next(lines)  # wrong names are noticed before anything is printed
    typer.echo(f"{measured_on()}\n\n{first}")
    for line in lines:
        typer.echo(line)


def measured_on() -> str:
    """The machine and the versions, without which a time says nothing."""
    import torch
    from joblib import cpu_count

    from contrastbench.benchmarks.running.environment import environment

    about = environment(torch.device("cpu"))
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return f"{about['device']}, {cpu_count()} cores; {versions}; commit {about['commit'] or '-'}"
