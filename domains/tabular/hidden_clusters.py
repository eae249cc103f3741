"""An embedded table whose classes are groups of clusters that many noisy columns share."""

import numpy as np

from contrastbench.domains.samples import Array

SEED = 20261
CLUSTERS = 24
CLASSES = 4  # of six clusters each
LATENT = 3  # dimensions in which the clusters lie
FEATURES = 96


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
