"""Options that several commands share, each declared once."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from contrastbench.domains.names import OURS


def examples(lines: Sequence[str]) -> str:
    """Return the end of a help text: examples, each on a line of its own however long."""
    title = "Examples:" if len(lines) > 1 else "Example:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


Domain = Annotated[str, typer.Option(help=f"Domain: {', '.join(OURS)} or a plugin's.")]
Encoder = Annotated[
    str, typer.Option(help="Folder that --export wrote, or a name such as torchvision:resnet50.")
]
OwnDataset = Annotated[
    str | None, typer.Option("--dataset", help="Data set; default: the one of its training.")
]
Dataset = Annotated[str | None, typer.Option(help="Data set; default: the domain's embedded one.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Parameter of the loss as KEY=VALUE, such as mu=0.7."),
]
Recipe = Annotated[
    list[str] | None, typer.Option(help="Setting of the training as KEY=VALUE, such as epochs=20.")
]
Tiny = Annotated[bool, typer.Option("--tiny", help="Run a smoke test on a tiny subset.")]
Results = Annotated[Path, typer.Option(help="Folder that holds runs/ with the records.")]
Target = Annotated[str | None, typer.Option(help="Column of the classes in a table of your own.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(envvar="CONTRASTBENCH_DATA", help="Folder that already holds the data files."),
]
DeviceOfRecord = Annotated[
    str | None, typer.Option(help="Device: cpu, cuda, ... or auto; default: cpu for a CPU record.")
]
Device = Annotated[
    str, typer.Option(help="Device: cpu, cuda, cuda:1, ... or auto, which prefers CUDA.")
]
Threads = Annotated[
    int | None,  # a hundred thousand exhausted the memory of a process
    typer.Option(min=1, max=1024, help="Number of CPU threads; default: what suits the domain."),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic/--no-deterministic",
        help="Make a GPU repeat its numbers, or allow its fastest kernels.",
    ),
]
TF32 = Annotated[
    bool,
    typer.Option("--tf32", help="Let a GPU multiply float32 as TensorFloat-32: faster, coarser."),
]
Compile = Annotated[
    bool,
    typer.Option("--compile", help="Compile encoders; on CUDA, make steps of one shape graphs."),
]
Trust = Annotated[bool, typer.Option("--trust", help="Run Python that the record holds or names.")]
Table = Annotated[str, typer.Argument(help="Table (bench list tables) or YAML file.")]
What = Annotated[
    str, typer.Argument(help="Table (bench list tables), standard, smoke, or path of a YAML file.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Restrict to KEY=VALUE of row, column, domain, dataset or loss; may repeat."),
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", "--seed", help="Seeds, such as 0-4 or 0,2,5; default: the file's."),
]
Shard = Annotated[
    str | None,
    typer.Option(help="Part i/n of the cells, such as 0/3: for machines without a shared disk."),
]
Metric = Annotated[
    str | None, typer.Option(help="Metric of the records to show; default: the table's own.")
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="Parameters: paper, as published; validation, chosen, which is the default with tune."
    ),
]
Join = Annotated[
    list[str] | None,
    typer.Option("--loss", help="Loss such as mine.py:Mine that joins the rows; may repeat."),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Take the quick part that a suite declares, in minutes.")
]


@dataclass(frozen=True)
class Cells:
    """A question for the cells of a table or a sweep."""

    what: What
    loss: Join = None
    quick: Quick = False
    only: Only = None
    seeds: Seeds = None
    tiny: Tiny = False
    selection: Selection = None
    shard: Shard = None
    results: Results = Path("results")


@dataclass(frozen=True)
class Numbers:
    """A question for the numbers of a table."""

    loss: Join = None
    quick: Quick = False
    metric: Metric = None
    selection: Selection = None
    results: Results = Path("results")


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Let the fields of a command's first argument, a question, be options of the command."""
    first, *others = inspect.signature(command).parameters.values()
    own, kind = inspect.signature(first.annotation).parameters, inspect.Parameter.KEYWORD_ONLY

    @wraps(command)
    def asked(**given: Any) -> None:
        command(first.annotation(**{name: given.pop(name) for name in own}), **given)

    options = [option.replace(kind=kind) for option in (*own.values(), *others)]
    vars(asked)["__signature__"] = inspect.Signature(options)
    return asked
