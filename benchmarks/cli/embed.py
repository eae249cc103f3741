"""The command `bench embed`: write an encoder's embeddings of any data into a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrastbench.benchmarks.api.encoders import encoder as open_encoder
from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.loading import loading
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.records import exports
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.domains.reading import needing
from contrastbench.errors import UserError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


def embed(
    encoder: opt.Encoder,
    output: Annotated[Path, typer.Option(help="New file: .npy, or .parquet with names as well.")],
    dataset: opt.OwnDataset = None,
    data_root: opt.DataRoot = None,
    device: opt.Device = "auto",
) -> None:
    """Embed a data set, and write one row for each sample.

    Samples need no classes. Rows stand in the order of the data; images of a folder in that of
    their names.

    Example: bench embed --encoder FOLDER --dataset csv:mine.csv --output mine.npy
    """
    check_data_root(data_root)
    write = writer(output)
    folder = exports.folder_of(encoder)
    with loading():
        opened = open_encoder(folder, device=device, data_root=data_root)
    dataset = dataset or exports.dataset_of(folder)
    if dataset is None:
        raise UserError(f"{encoder} does not say what it was trained on: give --dataset KIND:...")
    samples = opened.read(dataset, data_root)
    rows = opened.embed(samples.data)
    write(output, rows, samples.names)
    say(f"{len(rows)} embeddings of {rows.shape[1]} numbers are in {output}")


Writer = Callable[[Path, "NDArray[float32]", Sequence[str] | None], None]


def writer(output: Path) -> Writer:
    """Return the function that writes a file of this kind.

    Raises:
        UserError: there is such a file, no such folder, no such kind, or a library is missing.
    """
    if output.exists():
        raise UserError(f"--output {output} exists: name a new file")
    if not output.absolute().parent.is_dir():
        raise UserError(f"--output {output}: no folder {output.parent}: make it first")
    if output.suffix not in WRITERS:
        raise UserError(f"--output {output}: give a name that ends in {' or '.join(WRITERS)}")
    if output.suffix == ".parquet":
        with needing("tabular", str(output)):
            import pandas
            import pyarrow  # noqa: F401 - pandas writes by it

            assert pandas
    return WRITERS[output.suffix]


def write_npy(output: Path, rows: "NDArray[float32]", names: Sequence[str] | None) -> None:
    """Write an array of NumPy."""
    import numpy as np

    np.save(output, rows)


def write_parquet(output: Path, rows: "NDArray[float32]", names: Sequence[str] | None) -> None:
    """Write a Parquet file: columns e0, e1, ..., after a column `name` where samples have names."""
    import pandas as pd

    columns: dict[str, Any] = {} if names is None else {"name": names}
    columns |= {f"e{k}": column for k, column in enumerate(rows.T)}
    pd.DataFrame(columns).to_parquet(output, index=False)


WRITERS: dict[str, Writer] = {".npy": write_npy, ".parquet": write_parquet}
