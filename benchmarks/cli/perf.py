"""The command `bench perf`: times and memory beside common libraries."""

import importlib
import re
from typing import Annotated

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.domains.registry import loaded_declarations
from contrastbench.errors import UserError, unknown

PERF_PARTS = {part: f"contrastbench.benchmarks.perf.{part}" for part in ("losses", "commands")}


def perf(
    part: Annotated[
        str, typer.Argument(help="Benchmark: losses, commands, or a domain (bench list domains).")
    ],
    names: Annotated[
        list[str] | None, typer.Argument(help="Losses, commands, data sets or encoders.")
    ] = None,
    data_root: opt.DataRoot = None,
    device: opt.Device = "cpu",
    sizes: Annotated[
        str | None,
        typer.Option(help="Numbers of embeddings of losses between commas, such as 512,8192."),
    ] = None,
) -> None:
    """Measure times and ratios side by side in one run.

    Example: bench perf losses infonce adnce
    """
    parts = PERF_PARTS | {
        name: about.perf for name, about in loaded_declarations().items() if about.perf
    }
    if part not in parts:
        raise unknown("benchmark", part, parts)
    from contrastbench.benchmarks.perf.timing import measured_on
    from contrastbench.benchmarks.running.devices import open_device

    module = importlib.import_module(parts[part])
    opened = open_device(device)
    options = {} if sizes is None else {"sizes": asked_sizes(part, sizes)}
    lines = module.report(names or list(module.DEFAULT), data_root, opened, **options)
    first = next(lines)  # wrong names are noticed before anything is printed
    show(f"{measured_on(opened)}\n\n{first}")
    for line in lines:
        say(line)


def asked_sizes(part: str, sizes: str) -> tuple[int, ...]:
    """Return the sizes that were asked for.

    Raises:
        UserError: the benchmark has none, or they are no numbers of two views of two samples.

    >>> asked_sizes("losses", "512,8192")
    (512, 8192)
    """
    if part != "losses":
        raise UserError(f"bench perf {part} has no sizes: leave --sizes out")
    found = sizes.split(",")
    if not all(
        re.fullmatch("[0-9]{1,7}", size) and int(size) in range(4, 10**7, 2) for size in found
    ):
        raise UserError(f"--sizes {sizes!r}: give even numbers from 4 on, such as 512,8192")
    return tuple(map(int, found))
