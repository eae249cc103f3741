"""An embedded set of rings whose classes differ in which labels are neighbours."""

import numpy as np

from contrastbench.domains.samples import Array

SEED = 20241
LABELS = 12
CLASSES = 6
NODES = 36  # of each ring; every label is there three times


def label_pairs(graphs: int = 600) -> tuple[Array, Array, Array, Array]:
    """Return features (nodes, 48), edges both ways (2, edges), where graphs begin, and classes.

    Every graph is a ring. In a class each label has one partner, and nodes 2i and 2i + 1 carry
    partners; which pairs follow one another is random. A second label, which tells nothing, gives
    the nodes of a graph 36 different values. All graphs have equal degrees and equal counts of both
    labels, so no count of nodes can tell the classes apart.

    The draws are raw integers of PCG64, which no release of numpy changes.

    >>> x, edges, ptr, y = label_pairs()
    >>> len(ptr) - 1, np.bincount(y).tolist()
    (600, [100, 100, 100, 100, 100, 100])
    """
    bits = np.random.PCG64(SEED)
    y = np.arange(graphs) % CLASSES
    order = orders(bits, graphs, NODES // 2) % (LABELS // 2)
    pairs = np.stack([partners(label) for label in range(CLASSES)])[y[:, None], order]
    turned = orders(bits, graphs * NODES // 2, 2).reshape(pairs.shape)
    first = np.take_along_axis(pairs, turned, axis=2).reshape(-1)
    second = orders(bits, graphs, NODES).reshape(-1)
    x = np.concatenate([np.eye(LABELS)[first], np.eye(NODES)[second]], axis=1, dtype=np.float32)
    node = np.arange(graphs * NODES)
    following = node - node % NODES + (node + 1) % NODES
    both_ways = np.stack([np.append(node, following), np.append(following, node)])
    return x, both_ways, np.arange(graphs + 1) * NODES, y


def partners(label: int) -> Array:
    """Return the pairs of labels (6, 2) of a class: a round of a round-robin tournament.

    No two labels are partners in more than one class.

    >>> partners(0).tolist()
    [[11, 0], [1, 10], [2, 9], [3, 8], [4, 7], [5, 6]]
    """
    steps = np.arange(1, LABELS // 2)
    circle = LABELS - 1  # the last label stands still in the middle of the others
    pairs = np.stack([(label + steps) % circle, (label - steps) % circle], axis=1)
    return np.concatenate([[[circle, label]], pairs])


def orders(bits: np.random.PCG64, rows: int, columns: int) -> Array:
    """Return a random order of 0, 1, ... in each row."""
    return bits.random_raw(rows * columns).reshape(rows, columns).argsort(axis=1, kind="stable")
