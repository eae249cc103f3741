"""Graphs made here or collected: drawn ones, rings of outlines, lists of neighbours."""

import zipfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import file_sha256, obtain
from contrastbench.domains.reading import member
from contrastbench.domains.samples import Array
from contrastbench.errors import UserError

MOTIF_SEED, RING_SEED = 20231, 20241
LABELS, CLASSES = 12, 6  # of rings
NODES = 36  # of each ring; every label is there three times

# Motifs of five nodes and six edges: sizes and edge counts say nothing about the class.
MOTIFS = [
    [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],  # house
    [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)],  # complete bipartite 2 x 3
    [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)],  # butterfly: triangles with a common node
    [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)],  # diamond with a tail
]
PIECES = 32  # of an outline
Arrays = tuple[Array, Array, Array, Array]  # what `union` takes


def motif_graphs(graphs: int = 400) -> tuple[Array, Array, Array, Array]:
    """Features (nodes, 0), edges both ways (2, edges), where nodes of graphs begin, classes.

    Every graph is a random tree of 8 to 16 nodes with two motifs of its class joined to it. An
    untrained encoder and an SVM reach about 40 percent, one trained by InfoNCE about 60.

    >>> _, edges, ptr, y = motif_graphs()
    >>> len(ptr) - 1, np.bincount(y).tolist()
    (400, [100, 100, 100, 100])
    """
    rng = np.random.default_rng(MOTIF_SEED)
    y = rng.permutation(np.arange(graphs) % len(MOTIFS))
    made = [motif_graph(label, rng) for label in y]
    ptr = np.cumsum([0, *(nodes for nodes, _ in made)])
    one_way = np.concatenate([edges + start for (_, edges), start in zip(made, ptr, strict=False)])
    edges = np.concatenate([one_way, one_way[:, ::-1]]).T
    return np.zeros((ptr[-1], 0), dtype=np.float32), np.ascontiguousarray(edges), ptr, y


def motif_graph(label: int, rng: np.random.Generator) -> tuple[int, Array]:
    """Number of nodes and edges (edges, 2) of one graph."""
    nodes = int(rng.integers(8, 17))
    edges = [(int(rng.integers(child)), child) for child in range(1, nodes)]
    for _ in range(2):
        edges += [(nodes + a, nodes + b) for a, b in MOTIFS[label]]
        edges.append((int(rng.integers(nodes)), nodes + int(rng.integers(5))))
        nodes += 5
    return nodes, np.array(edges, dtype=np.int64)


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
    bits = np.random.PCG64(RING_SEED)
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
