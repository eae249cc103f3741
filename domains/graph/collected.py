"""Sets in formats of their own: outlines that become rings, and lists of neighbours."""

import zipfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import file_sha256, obtain
from contrastbench.domains.graph.data import Array
from contrastbench.domains.reading import member
from contrastbench.errors import UserError

PIECES = 32  # of an outline
Arrays = tuple[Array, Array, Array, Array]  # what `union` takes


def declared_file(file: Dataset, data_root: Path | None) -> Path:
    path = obtain(file, data_root)
    if file_sha256(path) != file.sha256:
        raise UserError(f"{path} is not the declared file (its sha256 is another): remove it")
    return path


def face_rings(about: Dataset, data_root: Path | None) -> Arrays:
    """Return rings whose nodes have the mean distance of a piece, standardised over all nodes.

    Lines of the files are a class and 131 distances from the centre, at steps around it.
    """
    lines = np.concatenate([np.loadtxt(declared_file(file, data_root)) for file in about.files])
    starts = np.linspace(0, lines.shape[1] - 1, PIECES + 1).round().astype(int)
    means = np.add.reduceat(lines[:, 1:], starts[:-1], axis=1) / np.diff(starts)
    x = ((means - means.mean()) / means.std()).reshape(-1, 1).astype(np.float32)
    node = np.arange(len(x)).reshape(-1, PIECES)
    onward = np.stack([node, np.roll(node, -1, axis=1)]).reshape(2, -1)
    edges = np.concatenate([onward, onward[::-1]], axis=1)
    ends = np.arange(0, len(x) + 1, PIECES)
    return x, edges, ends, np.unique(lines[:, 0], return_inverse=True)[1]


def threads(about: Dataset, data_root: Path | None) -> Arrays:
    """Return the graphs of a zip of lists of neighbours."""
    with zipfile.ZipFile(declared_file(about, data_root)) as archive:
        text = member(archive, "REDDIT-BINARY/REDDIT-BINARY.txt")
    return listed_graphs([*map(int, text.split())])


def listed_graphs(numbers: Sequence[int]) -> Arrays:
    """Return graphs of lists of neighbours; nodes have no features.

    The number of graphs is first. Each begins with its number of nodes and its class; each node
    has a label, which is not used, its number of neighbours, and these.

    >>> x, edges, ends, y = listed_graphs([1, 2, 7, 0, 1, 1, 0, 1, 0])
    >>> edges.tolist(), ends.tolist(), y.tolist()
    ([[0, 1], [1, 0]], [0, 2], [0])
    """
    left = iter(numbers)
    sizes: list[int] = []
    classes: list[int] = []
    counts: list[int] = []
    targets: list[int] = []
    for _ in range(next(left)):
        sizes.append(next(left))
        classes.append(next(left))
        for _ in range(sizes[-1]):
            next(left)
            counts.append(next(left))
            targets += islice(left, counts[-1])
    ends = np.cumsum([0, *sizes])
    begins = np.repeat(np.repeat(ends[:-1], sizes), counts)
    edges = np.stack([np.repeat(np.arange(ends[-1]), counts), targets + begins])
    x = np.zeros((ends[-1], 0), dtype=np.float32)
    return x, edges, ends, np.unique(classes, return_inverse=True)[1]
