"""The command `bench perf`: times and memory beside common libraries."""

import importlib
import re
from typing import Annotated

from typer import Argument

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import show
from contrastbench.domains.registry import loaded_declarations
from contrastbench.errors import UserError, check_known

PERF_PARTS = {part: f"contrastbench.benchmarks.perf.{part}" for part in ("losses", "commands")}


def perf(
    part: str,
    names: Annotated[list[str] | None, Argument()] = None,
    data_root: opt.DataRoot = None,
    device: str = "cpu",
) -> None:
    """Measure times and ratios side by side in one run.

    Args:
        part: Benchmark: losses, commands, or a domain (bench list domains).
        names: Losses, commands, data sets or encoders; of losses also sizes 2N.

    Example: bench perf losses infonce adnce 512 8192
    """
    domains = loaded_declarations().items()
    parts = PERF_PARTS | {name: about.perf for name, about in domains if about.perf}
    check_known("benchmark", part, parts)
    from contrastbench.benchmarks.perf.timing import measured_on
    from contrastbench.benchmarks.running.devices import open_device

    module = importlib.import_module(parts[part])
    opened = open_device(device)
    sizes = [name for name in names or () if part == "losses" and name.isdecimal()]
    asked = [name for name in names or () if name not in sizes]
    options = {"sizes": asked_sizes(sizes)} if sizes else {}
    lines = module.report(asked or list(module.DEFAULT), data_root, opened, **options)
    first = next(lines)  # wrong names are noticed before anything is printed
    show(f"{measured_on(opened)}\n\n{first}")
    for line in lines:
        show(line)


def asked_sizes(sizes: list[str]) -> tuple[int, ...]:
    """Return the sizes that were asked for.

    >>> asked_sizes(["512", "8192"])
    (512, 8192)
    """
    for size in sizes:
        if not (re.fullmatch("[0-9]{1,7}", size) and int(size) in range(4, 10**7, 2)):
            raise UserError(f"{size} is no size: give an even number from 4 on, such as 512")
    return tuple(map(int, sizes))
