"""Outlines of faces as rings: each node is a piece of the outline."""

from pathlib import Path

import numpy as np

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import fetch_files, file_sha256
from contrastbench.domains.graph.data import Array
from contrastbench.errors import UserError

PIECES = 32  # of an outline


def face_rings(about: Dataset, data_root: Path | None) -> tuple[Array, Array, Array, Array]:
    """Return rings whose nodes have the mean distance of a piece, standardised over all nodes.

    Lines of the files are a class and 131 distances from the centre, at steps around it.

    Raises:
        UserError: the files cannot be had, or are others.
    """
    paths = fetch_files(about, data_root)
    for path, file in zip(paths, about.files, strict=True):
        if file_sha256(path) != file.sha256:
            raise UserError(f"{path} is not {file.name} (its sha256 is another): remove it")
    lines = np.concatenate([np.loadtxt(path) for path in paths])
    starts = np.linspace(0, lines.shape[1] - 1, PIECES + 1).round().astype(int)
    means = np.add.reduceat(lines[:, 1:], starts[:-1], axis=1) / np.diff(starts)
    x = ((means - means.mean()) / means.std()).reshape(-1, 1).astype(np.float32)
    node = np.arange(len(x)).reshape(-1, PIECES)
    onward = np.stack([node, np.roll(node, -1, axis=1)]).reshape(2, -1)
    edges = np.concatenate([onward, onward[::-1]], axis=1)
    ends = np.arange(0, len(x) + 1, PIECES)
    return x, edges, ends, np.unique(lines[:, 0], return_inverse=True)[1]
