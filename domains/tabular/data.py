"""Tables by name: scikit-learn's, declared ones and anybody's own."""

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
from contrastbench.domains.tabular import DATASETS, SOURCES, TabularDataset
from contrastbench.domains.tabular.table import Roles, TabularSet

NO_TABLE = "cannot be read as a table"
SEED = 20261
CLUSTERS = 24
CLASSES = 4  # of six clusters each
LATENT = 3  # dimensions in which the clusters lie
FEATURES = 96


def load_rows(
    name: str, target: str | None = None, data_root: Path | None = None, **roles: Any
) -> tuple[TabularSet, str]:
    """A table by name and the sha256 of its content.

    The roles of columns are those of `Roles`, for a table of one's own.
    """
    table = ADAPTER.read(name, data_root, Roles(target, **roles))
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
def load_declared(name: str, data_root: Path | None, roles: Roles) -> TabularSet:
    own_alone = f" is for data of your own: {name} has its classes and parts"
    for option, value in roles._replace(lenient=False)._asdict().items():
        refuse(option.replace("target", "--target"), (value or (), own_alone))
    dataset = DATASETS[name]
    if not dataset.url:
        return reader_of(__package__, dataset)(dataset)
    path = next(in_data_root(dataset, data_root), None) or fetch_file(dataset)
    with reading(path, fault=NO_TABLE, extra="tabular"):
        return reader_of(__package__, dataset)(path, dataset)


def read_own(kind: str, what: str, data_root: Path | None, roles: Roles) -> TabularSet:
    from contrastbench.domains.tabular.own import read_rows  # needs pandas

    return read_rows(kind, what, data_root, roles)


ADAPTER = owned.Adapter("tabular", DATASETS, SOURCES, read_own, load_declared, NO_TABLE)


def in_data_root(dataset: TabularDataset, data_root: Path | None) -> Iterator[Path]:
    """Its files in the data root or in its collection's folder there, unpacked first."""
    name = cached_file(dataset).name
    for folder in (
        (data_root, data_root / dataset.folder) if data_root and not dataset.shipped else ()
    ):
        for path in (folder / name.removesuffix(".gz"), folder / name):
            if path.is_file():
                yield path


def hidden_clusters(rows: int = 2000) -> tuple[Array, Array]:
    """Return the numbers (rows, 96) and classes (rows,) of the table.

    Every row belongs to one of 24 clusters, which lie at random in three dimensions. Each column is
    a random linear view of them with noise as large as its signal. A class is six clusters that lie
    anywhere, so no plane divides the classes. The columns are redundant: what one tells about the
    cluster, others tell too, and a network can learn this from rows alone.

    All steps are of whole numbers, and the draws are raw integers of PCG64. No machine and no
    release of numpy changes them.

    >>> x, y = hidden_clusters()
    >>> x.shape, np.bincount(y).tolist()
    ((2000, 96), [500, 500, 500, 500])
    """
    bits = np.random.PCG64(SEED)
    centres = draws(bits, 1000, CLUSTERS, LATENT)
    views = draws(bits, 3, LATENT, FEATURES)
    cluster = np.arange(rows) % CLUSTERS
    noise = draws(bits, 2000, rows, FEATURES, 4).sum(axis=2)
    return (centres @ views)[cluster] + noise, cluster % CLASSES


def draws(bits: np.random.PCG64, largest: int, *shape: int) -> Array:
    """Return whole numbers of equal chance from -largest to largest."""
    raw = bits.random_raw(int(np.prod(shape))) % np.uint64(2 * largest + 1)
    return raw.astype(np.int64).reshape(shape) - largest
