"""Tables: scikit-learn's, declared ones, and anybody's CSV or Parquet file, read strictly."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import cached_file, fetch
from contrastbench.domains.reading import UNPACKED, reading
from contrastbench.domains.tabular import DATASETS, pmlb
from contrastbench.losses.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas

Array = np.ndarray[Any, np.dtype[Any]]
EMBEDDED_TABLES = {
    "breast_cancer": "breast_cancer",
    "digits-table": "digits",
    "iris": "iris",
    "wine": "wine",
}
# i-Mix's: the last rows, and a seeded draw from all others
HIGGS_TEST, HIGGS_TRAIN = (500_000, 100_000)
# the class and the 21 low-level features; the other 7 are computed from them
HIGGS_COLUMNS = range(22)
MAX_NUMBERS = 2**31  # of a Parquet file: 16 GiB


@dataclass(frozen=True)
class Table:
    """Rows of numeric and of categorical columns, with a class each."""

    numeric: Array  # (rows, columns) floats, nan where missing
    categorical: Array  # (rows, columns) strings, "" where missing
    names: tuple[str, ...]  # of the numeric and then of the categorical columns
    y: Array  # (rows,) classes 0, 1, ...
    classes: tuple[str, ...]
    starts: tuple[int, int] | None = (
        None  # where the validation and the test rows start; None: the seed draws them
    )
    notes: dict[str, Any] = field(default_factory=dict)  # what reading left out

    def __len__(self) -> int:
        return len(self.y)


def load(name: str, target: str | None = None, data_root: Path | None = None) -> tuple[Table, str]:
    """A table by name and the sha256 of its content.

    Args:
        name: a declared dataset, `csv:FILE` or `parquet:FILE`; the file is looked for here, then in
            the data root.
        target: the column of classes in such a file.
        data_root: a folder that already holds the files.

    Raises:
        UserError: unknown name or column, no file, or a file that is no table with classes.
    """
    kind, colon, file = name.partition(":")
    if colon and kind in READERS:
        path = find(Path(file), data_root)
        return load_file(READERS[kind], path, target, path.stat().st_mtime_ns)
    if target is not None:
        raise UserError(
            f"--target is for csv:FILE and parquet:FILE; the classes of {name} are known"
        )
    if name in EMBEDDED_TABLES:
        return with_hash(embedded(EMBEDDED_TABLES[name]))
    if name in DECLARED:
        return load_declared(name, data_root)
    raise unknown(
        "tabular dataset",
        name,
        [*EMBEDDED_TABLES, *DECLARED],
        "; your own: csv:FILE or parquet:FILE",
    )


def embedded(name: str) -> Table:
    """A table that scikit-learn carries."""
    data = getattr(sklearn_datasets, f"load_{name}")()
    names, classes = (tuple(map(str, data[key])) for key in ("feature_names", "target_names"))
    return Table(
        data.data.astype(np.float64), no_columns(len(data.target)), names, data.target, classes
    )


def no_columns(rows: int) -> Array:
    """A table's categorical part where there is none."""
    return np.empty((rows, 0), dtype=object)


@lru_cache(maxsize=1)
def load_file(
    read: Callable[[Path], Any], path: Path, target: str | None, changed: int
) -> tuple[Table, str]:
    """A user's file; the last one is kept for the next seed, unless it was changed since."""
    frame = read_strictly(read, path)
    if not len(frame):
        raise UserError(f"{path} has no rows")
    names = [str(column) for column in frame.columns]
    if target is None:
        raise UserError(
            f"{path}: name the column of classes with --target, one of {', '.join(names)}"
        )
    if target not in names:
        raise unknown(f"column of {path}", target, names)
    return with_hash(from_frame(path, frame.set_axis(names, axis=1), target))


@lru_cache(maxsize=1)
def load_declared(name: str, data_root: Path | None) -> tuple[Table, str]:
    """A declared table, from the data root or the network."""
    dataset, read = DATASETS[name], DECLARED[name]
    path = next(in_data_root(dataset, data_root), None) or fetch(dataset)
    return with_hash(read_strictly(lambda file: read(file, dataset), path))


def in_data_root(dataset: Dataset, data_root: Path | None) -> Iterator[Path]:
    """Its files in the data root or in its collection's folder there, unpacked first."""
    name = cached_file(dataset).name
    for folder in (data_root, data_root / dataset.folder) if data_root else ():
        for path in (folder / name.removesuffix(".gz"), folder / name):
            if path.is_file():
                yield path


def find(path: Path, data_root: Path | None) -> Path:
    """The file of that name, here or in the data root."""
    for candidate in (path, data_root / path if data_root else path):
        if candidate.is_file():
            return candidate
    raise UserError(f"no file {path}" + (f", nor in {data_root}" if data_root else ""))


def read_strictly(read: Callable[[Path], Any], path: Path) -> Any:
    """What a reader makes of a file; whatever is wrong with it is one line."""
    with reading(path, "repair or replace it", "cannot be read as a table"):
        try:
            return read(path)
        except ImportError as error:
            fix = 'pip install "contrastbench[tabular]"'
            module = error.name or "pyarrow"
            raise UserError(
                f"reading {path.name} needs {module}, which is not installed: {fix}"
            ) from None


def read_csv(path: Path) -> "pandas.DataFrame":
    """A CSV file with a header; empty fields, NA and ? are missing."""
    import pandas as pd

    check_unpacked(path)
    return pd.read_csv(path, na_values=["?"], skipinitialspace=True, low_memory=False)


def check_unpacked(path: Path) -> None:
    """Raise if a packed file, whose few bytes may stand for any number, unpacks to too many."""
    from pandas.io.common import get_handle, infer_compression

    if infer_compression(path, "infer") is None:
        return
    with get_handle(path, "rb", compression="infer", is_text=False) as handles:
        blocks = iter(lambda: handles.handle.read(2**20), b"")
        if any(size > UNPACKED for size in accumulate(map(len, blocks))):
            raise UserError(f"{path} unpacks to more than {UNPACKED / 2**30:.3g} GiB")


def read_parquet(path: Path) -> "pandas.DataFrame":
    """A Parquet file, whose few bytes may stand for any number of equal rows."""
    import pandas as pd
    from pyarrow import parquet

    kept = parquet.read_metadata(path)
    if kept.num_rows * kept.num_columns > MAX_NUMBERS:
        size = f"{kept.num_rows} rows of {kept.num_columns} columns"
        raise UserError(f"{path} is too large ({size}): leave rows or columns out")
    return pd.read_parquet(path)


def read_covertype(path: Path, dataset: Dataset) -> Table:
    """Forest CoverType in UCI's split, whose first two parts are i-Mix's training rows."""
    import pandas as pd

    frame = pd.read_csv(path, header=None)
    check_shape(path, frame.shape, dataset.sizes)
    return from_frame(path, frame, 54, starts=(11_340, 15_120))


def read_higgs(path: Path, dataset: Dataset) -> Table:
    """Higgs-100K: rows drawn by numpy's seed 1, a fifth for validation; the last are the test.

    The 100,000 rows are those of i-Mix's code (tabular.py), which draws `choice(10500000, 100000,
    replace=False)` after that seed; here in the order of the file.
    """
    import pandas as pd

    rows, columns = dataset.sizes
    keep = np.zeros(rows, dtype=bool)
    keep[np.random.RandomState(1).permutation(rows - HIGGS_TEST)[:HIGGS_TRAIN]] = True
    keep[-HIGGS_TEST:] = True
    parts, read = [], 0
    with pd.read_csv(path, header=None, dtype=np.float32, chunksize=500_000) as chunks:
        for chunk in chunks:
            check_shape(
                path, (min(rows, read + len(chunk)), chunk.shape[1]), (read + len(chunk), columns)
            )
            parts.append(chunk.loc[keep[read : read + len(chunk)], HIGGS_COLUMNS])
            read += len(chunk)
    check_shape(path, (read, columns), dataset.sizes)
    return from_frame(path, pd.concat(parts), 0, starts=(HIGGS_TRAIN * 4 // 5, HIGGS_TRAIN))


def read_pmlb(path: Path, dataset: Dataset) -> Table:
    """A table of the Penn Machine Learning Benchmarks."""
    import pandas as pd

    frame = pd.read_csv(path, sep="\t")
    check_shape(path, frame.shape, dataset.sizes)
    return from_frame(path, frame, "target")


READERS: dict[str, Callable[[Path], Any]] = {"csv": read_csv, "parquet": read_parquet}
DECLARED: dict[str, Callable[[Path, Dataset], Table]] = {
    "CoverType": read_covertype,
    "Higgs-100K": read_higgs,
    **dict.fromkeys(pmlb.DATASETS, read_pmlb),
}


def check_shape(path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise unless a declared dataset has the declared rows and columns."""
    if shape != expected:
        raise UserError(f"{path} is damaged: {shape} rows and columns instead of {expected}")


def from_frame(
    path: Path, frame: "pandas.DataFrame", target: Any, starts: tuple[int, int] | None = None
) -> Table:
    """A table of a file's data frame; rows without a class are left out and counted.

    Raises:
        UserError: no features, an infinite value, one class only, or a class too rare for three
            parts.
    """
    from pandas.api.types import is_numeric_dtype

    labelled = frame[target].notna()
    features = frame.loc[labelled].drop(columns=target)
    numbers = [column for column in features if is_numeric_dtype(features[column])]
    words = [column for column in features if column not in numbers]
    numeric = features[numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    categorical = (
        features[words]
        .astype(object)
        .where(features[words].notna(), "")
        .astype(str)
        .to_numpy(dtype=object)
    )
    classes, y = np.unique(frame.loc[labelled, target].astype(str), return_inverse=True)
    names = tuple(map(str, [*numbers, *words]))
    notes = {} if labelled.all() else {"rows without a class": int((~labelled).sum())}
    table = Table(numeric, categorical, names, y, tuple(map(str, classes)), starts, notes)
    check_table(path, table)
    return table


def check_table(path: Path, table: Table) -> None:
    """Raise unless there is something to learn from and to classify."""
    if not table.names:
        raise UserError(f"{path} has no column besides the classes")
    infinite = np.isinf(table.numeric).sum(axis=0)
    if infinite.any():
        column = int(infinite.argmax())
        fix = "leave them empty if they are missing"
        raise UserError(
            f"{path}: column {table.names[column]} has {infinite[column]} infinite values: {fix}"
        )
    if len(table.classes) < 2:
        rows = f"all {len(table)} rows are of one class"
        raise UserError(f"{path}: {rows}: there is nothing to classify")
    counts = np.bincount(table.y)
    if table.starts is None and counts.min() < 5:
        few = f"{path}: class {table.classes[counts.argmin()]} has {counts.min()} rows"
        raise UserError(
            f"{few}, fewer than the 5 that three parts need: is the target a column of classes?"
        )


def with_hash(table: Table) -> tuple[Table, str]:
    """The table and the sha256 of what it holds, however its file was packed."""
    digest = hashlib.sha256()
    digest.update(repr((table.numeric.shape, table.names, table.classes, table.starts)).encode())
    digest.update(np.ascontiguousarray(table.numeric).data)
    digest.update(np.ascontiguousarray(table.y.astype(np.int64)).data)
    digest.update("\x1f".join(table.categorical.ravel()).encode())
    return table, digest.hexdigest()
