"""Tables: scikit-learn's, declared ones and anybody's own, read strictly."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from contrastbench.domains import own as owned
from contrastbench.domains.declaration import reader_of
from contrastbench.domains.download import cached_file, fetch_file
from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular import DATASETS, SOURCES, TabularDataset, own
from contrastbench.domains.tabular.hidden_clusters import hidden_clusters
from contrastbench.domains.tabular.table import TabularSet, from_frame

NO_TABLE = "cannot be read as a table"
# the class and the 21 low-level features; the other 7 are computed from them
HIGGS_COLUMNS = range(22)


def load_rows(
    name: str, target: str | None = None, data_root: Path | None = None, **roles: Any
) -> tuple[TabularSet, str]:
    """A table by name and the sha256 of its content.

    The roles of columns are those of `own.Roles`, for a table of one's own.
    """
    table = ADAPTER.read(name, data_root, own.Roles(target, **roles))
    return table, table.digest


def scikit_learn_table(dataset: TabularDataset) -> TabularSet:
    data = getattr(sklearn_datasets, f"load_{dataset.layout}")()
    names, classes = (tuple(map(str, data[key])) for key in ("feature_names", "target_names"))
    return TabularSet(
        data.data.astype(np.float64), no_columns(len(data.target)), names, data.target, classes
    )


def hidden_cluster_table(dataset: TabularDataset) -> TabularSet:
    numbers, classes = hidden_clusters()
    names = tuple(f"column {column}" for column in range(numbers.shape[1]))
    text = tuple(f"class {label}" for label in range(classes.max() + 1))
    return TabularSet(numbers.astype(np.float64), no_columns(len(classes)), names, classes, text)


def no_columns(rows: int) -> Array:
    return np.empty((rows, 0), dtype=object)


@lru_cache(maxsize=1)
def load_declared(name: str, data_root: Path | None, roles: own.Roles) -> TabularSet:
    own_alone = f" is for data of your own: {name} has its classes and parts"
    for option, value in roles._replace(lenient=False)._asdict().items():
        refuse(option.replace("target", "--target"), (value or (), own_alone))
    dataset = DATASETS[name]
    read = reader_of(__package__, dataset)
    if not dataset.url:
        return read(dataset)
    path = next(in_data_root(dataset, data_root), None) or fetch_file(dataset)
    with reading(path, fault=NO_TABLE, extra="tabular"):
        return read(path, dataset)


ADAPTER = owned.Adapter("tabular", DATASETS, SOURCES, own.read_rows, load_declared, NO_TABLE)


def in_data_root(dataset: TabularDataset, data_root: Path | None) -> Iterator[Path]:
    """Its files in the data root or in its collection's folder there, unpacked first."""
    name = cached_file(dataset).name
    for folder in (
        (data_root, data_root / dataset.folder) if data_root and not dataset.shipped else ()
    ):
        for path in (folder / name.removesuffix(".gz"), folder / name):
            if path.is_file():
                yield path


def read_table(path: Path, dataset: TabularDataset) -> TabularSet:
    """Read a table of tabs with a header, as PMLB's; by a number as target of commas without."""
    import pandas as pd

    how: dict[str, Any] = {"sep": "\t"} if isinstance(dataset.target, str) else {"header": None}
    frame = pd.read_csv(path, **how)
    check_shape(path, frame.shape, dataset.sizes)
    return from_frame(path, frame, dataset.target, starts=dataset.starts)


def read_higgs(path: Path, dataset: TabularDataset) -> TabularSet:
    """Higgs-100K: rows drawn by numpy's seed 1, a fifth for validation; the last are the test.

    The 100,000 rows are those of i-Mix's code (tabular.py), which draws `choice(10500000, 100000,
    replace=False)` after that seed; here in the order of the file.
    """
    import pandas as pd

    rows, columns = dataset.sizes
    assert dataset.parts, "they are declared"
    train, validation, test = dataset.parts
    keep = np.zeros(rows, dtype=bool)
    keep[np.random.RandomState(1).permutation(rows - test)[: train + validation]] = True
    keep[-test:] = True
    parts, read = [], 0
    with pd.read_csv(path, header=None, dtype=np.float32, chunksize=500_000) as chunks:
        for chunk in chunks:
            check_shape(
                path, (min(rows, read + len(chunk)), chunk.shape[1]), (read + len(chunk), columns)
            )
            parts.append(chunk.loc[keep[read : read + len(chunk)], HIGGS_COLUMNS])
            read += len(chunk)
    check_shape(path, (read, columns), dataset.sizes)
    return from_frame(path, pd.concat(parts), dataset.target, starts=dataset.starts)


def check_shape(path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    fault = f" is damaged: {shape} rows and columns instead of {expected}"
    refuse(path, (shape != expected, fault))
