"""Options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

Domain = Annotated[str, typer.Option(help="graph, image, sentence, tabular or a package's.")]
Dataset = Annotated[str | None, typer.Option(help="Default: the domain's embedded one.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE for the loss, e.g. mu=0.7.")
]
Recipe = Annotated[
    list[str] | None, typer.Option(help="KEY=VALUE for the training, e.g. epochs=20.")
]
Tiny = Annotated[bool, typer.Option("--tiny", help="A smoke test on a tiny subset.")]
Results = Annotated[Path, typer.Option(help="The folder that holds runs/ with the records.")]
Target = Annotated[str | None, typer.Option(help="The column of classes in a table of your own.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(envvar="CONTRASTBENCH_DATA", help="A folder that already holds the data files."),
]
Device = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1, ... or auto: CUDA where there is one.")
]
Threads = Annotated[
    int | None,  # a hundred thousand exhausted the memory of a process
    typer.Option(min=1, max=1024, help="CPU threads; default: what suits the domain."),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic/--no-deterministic",
        help="Whether a GPU repeats its numbers; no: its fastest kernels.",
    ),
]
TF32 = Annotated[
    bool, typer.Option("--tf32", help="A GPU multiplies float32 in TensorFloat-32: faster, coarse.")
]
Table = Annotated[str, typer.Argument(help="A table (bench list tables), or a YAML file.")]
What = Annotated[
    str,
    typer.Argument(help="A table (bench list tables), smoke, or the path of a YAML file."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="KEY=VALUE of row, column, domain, dataset or loss; repeat it for more."),
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", "--seed", help="0-4 or 0,2,5; default: the file's, or 0-4."),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="paper (default): parameters as published; "
        "or validation: chosen from grids by validation data."
    ),
]
Join = Annotated[
    list[str] | None,
    typer.Option("--loss", help="A loss such as mine.py:Mine joins the sweep; repeat it for more."),
]
