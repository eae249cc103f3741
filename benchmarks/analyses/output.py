"""Prepare the folder of an analysis, with a CSV and a plot of one name.

Brings neither torch nor matplotlib.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.records.store import file_name
from contrastbench.benchmarks.records.writable import prepare_output
from contrastbench.errors import UserError, tell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def prepare_folder(out: Path | None, results: Path, analysis: str, *names: str) -> Path:
    """Make the folder before anything is trained, and check that plots can be drawn.

    Raises:
        UserError: matplotlib is missing, or the folder cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise UserError(
            'the plot needs matplotlib, which is not installed: pip install "contrastbench[report]"'
        )
    name = file_name("-".join((analysis, *names)))
    folder = out or results / "analyses" / name
    prepare_output(folder, "--output")
    return folder


def write_csv(
    folder: Path, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Path:
    """Write and name a CSV; numbers that are not there are empty cells."""
    path, text = folder / f"{name}.csv", io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(files.no_formula, columns))
    writer.writerows(map(files.no_formula, row) for row in rows)
    if path.is_file() and path.read_bytes() != text.getvalue().encode():
        set_aside(path)
    files.replace(path, text.getvalue())
    return path


def set_aside(path: Path) -> None:
    """Give a CSV of other numbers, and the plot beside it, a number in their names."""
    pair = [one for one in (path, path.with_suffix(".svg")) if one.is_file()]
    free = (k for k in count(1) if not path.with_stem(f"{path.stem}-{k}").exists())
    number = next(free)
    for one in pair:
        one.rename(one.with_stem(f"{one.stem}-{number}"))
    tell(f"{path} of before is {path.stem}-{number}.csv now")


def write_results(
    folder: Path,
    analysis: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    figure: "Figure",
) -> Iterator[Path]:
    """Write a CSV and a plot of one name, and name both."""
    yield write_csv(folder, analysis, columns, rows)
    plot, picture = folder / f"{analysis}.svg", io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    files.replace(plot, picture.getvalue())
    yield plot
