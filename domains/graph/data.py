"""Graph datasets: the TU text format read strictly, and the embedded sets."""

import hashlib
import io
import re
import zipfile
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from contrastbench.domains.declaration import reader_of
from contrastbench.domains.download import fetch_file
from contrastbench.domains.graph import DATASETS, SOURCES, TU_URL, GraphDataset
from contrastbench.domains.own import unknown_dataset
from contrastbench.domains.reading import cause, member, member_names, reading, refuse
from contrastbench.domains.samples import chosen

Array = np.ndarray[Any, np.dtype[np.int64]]
MAX_FEATURES = 2**31  # numbers in the node labels one-hot: 8 GiB
MAX_LABELS = 2**16  # columns of them: an encoder of more would take gigabytes, and no set has them
MAX_DEGREE = 255  # degrees above share the last column of the degree one-hot


@dataclass(frozen=True)
class Graphs:
    """Many graphs as one disjoint union, nodes and edges of a graph side by side."""

    x: Tensor  # (nodes, features)
    edge_index: Tensor  # (2, edges), sorted by first and then second node
    node_ptr: Tensor  # (graphs + 1,) where each graph's nodes begin
    edge_ptr: Tensor  # (graphs + 1,) where each graph's edges begin
    y: Tensor  # (graphs,) classes 0, 1, ...; or (graphs, tasks) answers 0, 1 or nan
    edge_attr: Tensor  # (edges, features), without columns where no encoder reads them
    labels: tuple[str, ...] = ()  # what the columns of x stand for, where a reader names them
    classes: tuple[str, ...] = ()  # the classes' names, where a reader has them
    smiles: tuple[str, ...] = ()  # of each graph, where all are molecules
    groups: tuple[str, ...] = ()  # of each graph, such as its patient, where one is asked for

    def __len__(self) -> int:
        return len(self.y)

    @property
    def tasks(self) -> int:
        """Return how many answers a graph has; 0 where it has a class."""
        return self.y.shape[1] if self.y.ndim > 1 else 0

    def __getitem__(self, part: slice) -> "Graphs":
        """The graphs of a slice; all of them are the object itself."""
        start, stop, step = part.indices(len(self))
        if step > 1:
            return self.select(torch.arange(start, stop, step, device=self.y.device))
        if (start, stop) == (0, len(self)):
            return self
        return self.cut([start, stop])[0]

    def split(self, size: int) -> list["Graphs"]:
        return self.cut([*range(0, len(self), size), len(self)])

    def cut(self, places: list[int]) -> list["Graphs"]:
        """Consecutive graphs from each place to the next; the device is waited for once."""
        ends = torch.stack([self.node_ptr, self.edge_ptr])[:, places].T.tolist()
        return [
            Graphs(
                self.x[n0:n1],
                self.edge_index[:, e0:e1] - n0,
                self.node_ptr[start : stop + 1] - n0,
                self.edge_ptr[start : stop + 1] - e0,
                self.y[start:stop],
                self.edge_attr[e0:e1],
            )
            for (start, stop), ((n0, e0), (n1, e1)) in zip(
                pairwise(places), pairwise(ends), strict=True
            )
        ]

    def select(self, order: Tensor) -> "Graphs":
        nodes, node_ptr = segment_items(self.node_ptr, order)
        edges, edge_ptr = segment_items(self.edge_ptr, order)
        shift = (node_ptr[:-1] - self.node_ptr[order]).repeat_interleave(edge_ptr.diff())
        links = self.edge_index[:, edges] + shift
        parts = node_ptr, edge_ptr, self.y[order], self.edge_attr[edges]
        smiles, groups = (chosen(names, order.tolist()) for names in (self.smiles, self.groups))
        return Graphs(self.x[nodes], links, *parts, smiles=smiles, groups=groups)

    def to(self, device: torch.device) -> "Graphs":
        parts = (field.name for field in fields(self) if field.type is Tensor)
        return replace(self, **{name: getattr(self, name).to(device) for name in parts})

    @cached_property
    def graph_of_node(self) -> Tensor:
        """(nodes,) the graph of each node."""
        return segments(self.node_ptr)

    @cached_property
    def row_ptr(self) -> Tensor:
        """(nodes + 1,) where the edges of each node begin: rows of the adjacency in CSR form."""
        return pointers(occurrences(self.edge_index[0], len(self.x)))


def pointers(sizes: Tensor) -> Tensor:
    """Return where segments of those sizes begin, and the end."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def occurrences(numbers: Tensor, n: int) -> Tensor:
    """(n,) how often each of 0, 1, ... n - 1 is among the numbers.

    `torch.bincount` makes the host wait for the largest of them.
    """
    return numbers.new_zeros(n).scatter_add_(0, numbers, torch.ones_like(numbers))


def segments(ptr: Tensor) -> Tensor:
    return torch.arange(len(ptr) - 1, device=ptr.device).repeat_interleave(ptr.diff())


def segment_items(ptr: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """The items of the segments of those numbers, and where each begins among them."""
    sizes = ptr.diff()[order]
    new_ptr = pointers(sizes)
    shift = (ptr[order] - new_ptr[:-1]).repeat_interleave(sizes)
    return torch.arange(len(shift), device=ptr.device) + shift, new_ptr


def union(
    x: Tensor, edge_index: Tensor, node_ptr: Tensor, y: Tensor, edge_attr: Tensor | None = None
) -> Graphs:
    """Graphs of an unordered edge list: loops and repeated edges removed, edges sorted.

    Of repeated edges the first one's features stay.
    """
    n, proper = max(1, len(x)), edge_index[0] != edge_index[1]
    source, target = edge_index[:, proper]
    keys, first = np.unique(source * n + target, return_index=True)
    edges = torch.from_numpy(np.stack([keys // n, keys % n]))
    edge_ptr = torch.searchsorted(edges[0].contiguous(), node_ptr)
    attr = x.new_zeros(len(keys), 0) if edge_attr is None else edge_attr[proper][first]
    return Graphs(x, edges, node_ptr, edge_ptr, y, attr)


class RawSet(NamedTuple):
    """A set in the TU collection's format: what its files begin with, and their bytes."""

    name: str
    place: Path | None = None  # a folder, or a zip, of which nothing is extracted; None: no files

    def read(self, suffix: str) -> bytes | None:
        """Return the bytes of the file of a suffix such as "A"; None: there is no such file."""
        wanted = f"{self.name}_{suffix}.txt"
        if self.place is None or self.place.is_dir():
            path = self.place and self.place / wanted
            return path.read_bytes() if path and path.is_file() else None
        fix = f"delete it and download {TU_URL.format(self.name)} again"
        with reading(self.place, fix), zipfile.ZipFile(self.place) as archive:
            places = [m for m in member_names(archive) if Path(m).name == wanted]
            if len(places) > 1:
                raise ValueError(f"{places[0]} and {places[1]}")
            return member(archive, places[0]) if places else None

    def reading(self) -> AbstractContextManager[None]:
        return reading(f"graph dataset {self.name}", "get its files again")

    def refuse(self, suffix: str, *faults: tuple[object, str]) -> None:
        # nobody has a user's own set
        fix = f"get {TU_URL.format(self.name)} again" if self.name in DATASETS else "correct it"
        what = f"{self.name}_{suffix}.txt is missing or damaged: "
        refuse(what, *((broken, f"{fault.rstrip('.')}; {fix}") for broken, fault in faults))

    def numbers(self, suffix: str, lines: int | None = None, dtype: Any = np.int64) -> Any:
        """A file's numbers, of so many lines if they are given; None: there is no such file."""
        text = self.read(suffix)
        if text is None:
            return None
        self.refuse(suffix, (not text.strip(b"\xef\xbb\xbf\r\n "), "it is empty"))
        counted = ""
        try:
            file = io.TextIOWrapper(io.BytesIO(text), "utf-8-sig")  # any line ends
            values = np.loadtxt(file, dtype, delimiter=",", ndmin=2, comments=None)
        except ValueError as error:
            wrong = cause(error).partition("; use")[0].replace(" to int64", ", no whole number,")
            counted = re.sub(r"row (\d+), c", lambda row: f"line {int(row[1]) + 1}, c", wrong)
        self.refuse(suffix, (counted, counted))
        of = "edges" if suffix == "edge_labels" else "nodes"
        unlike = lines not in (None, len(values))
        self.refuse(suffix, (unlike, f"{len(values)} lines for {lines} {of}"))
        return values

    def needed(self, suffix: str, columns: int) -> Array:
        values: Array = self.numbers(suffix)
        self.refuse(suffix, (values is None, "no such file"))
        found, wanted = values.shape[1], ("one", "two")[columns - 1]
        self.refuse(suffix, (found != columns, f"{found} columns instead of {wanted}"))
        return values

    def one_hots(self, suffix: str, labels: Array) -> Tensor:
        width = sum(int(c.max()) - int(c.min()) + 1 for c in labels.T)
        many = width > MAX_LABELS or width * len(labels) > MAX_FEATURES
        self.refuse(suffix, (many, f"labels {labels.min()}..{labels.max()} are too many"))
        return torch.cat([one_hot(torch.from_numpy(c - c.min())).float() for c in labels.T], dim=1)


@lru_cache(maxsize=1)
def load_graphs(name: str, data_root: Path | None = None) -> tuple[Graphs, str]:
    """A dataset by name, x its node labels one-hot or without columns, and its sha256.

    The last one stays in memory for the next seed. A data root has NAME.zip, NAME/NAME_A.txt, or
    these inside a folder `tudataset`.
    """
    known = DATASETS.get(name)
    if known and known.reader:
        asked = (known, data_root) if known.url else ()  # an embedded one is made
        graphs = union(*map(torch.from_numpy, reader_of(__package__, known)(*asked)))
    else:
        raw = open_raw(name, data_root)
        with raw.reading():
            graphs = parse_tu(raw, known)
    digest = content_hash(graphs)
    changed = known and known.content not in ("", digest)
    again = f"get {TU_URL.format(name)} again"
    refuse(f"the files of {name}", (changed, f" differ from the collection's: {again}"))
    return graphs, digest


def with_attributes(graphs: Graphs, digest: str, dataset: str, raw: RawSet) -> tuple[Graphs, str]:
    """The graphs of a TU set with their nodes' attributes behind the labels, and their sha256.

    Each column is standardised over all nodes of the set; a constant one is zero.
    """
    with raw.reading():
        values = raw.numbers("node_attributes", len(graphs.x), np.float64)
    fix = "leave out --recipe features=attributes; x of a Data is taken as it is"
    refuse(dataset, (values is None, f" has no file of node attributes: {fix}"))
    raw.refuse("node_attributes", (not np.isfinite(values).all(), "not all numbers are finite"))
    constant = values.max(axis=0) == values.min(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(constant, np.inf, values.std(axis=0))
    x = torch.cat([graphs.x, torch.from_numpy(scaled).to(graphs.x)], dim=1)
    both = hashlib.sha256(digest.encode() + np.ascontiguousarray(values).tobytes()).hexdigest()
    return replace(graphs, x=x), both


def with_edge_labels(graphs: Graphs, dataset: str, raw: RawSet) -> Graphs:
    with raw.reading():
        ends = raw.numbers("A")
        labels = raw.numbers("edge_labels", None if ends is None else len(ends))
    fix = "give them, or take encoder=gin"
    refuse(dataset, (labels is None, f" has no labels or features of edges: {fix}"))
    attr = raw.one_hots("edge_labels", labels)
    return replace(
        graphs, edge_attr=union(graphs.x, joined(ends), graphs.node_ptr, graphs.y, attr).edge_attr
    )


def graph_counts(graphs: Graphs) -> dict[str, int]:
    """Return counts that tell a set from a part of it; an edge counts in both directions."""
    sizes = {"graphs": len(graphs), "nodes": len(graphs.x), "edges": graphs.edge_index.shape[1]}
    labels = {"tasks": graphs.tasks} if graphs.tasks else {"classes": len(graphs.y.unique())}
    return sizes | labels


def content_hash(graphs: Graphs) -> str:
    digest = hashlib.sha256()
    for tensor in (graphs.x, graphs.edge_index, graphs.node_ptr, graphs.y):
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(np.ascontiguousarray(tensor.numpy()).data)
    digest.update("\x1f".join(graphs.groups).encode())
    return digest.hexdigest()


def open_raw(name: str, data_root: Path | None) -> RawSet:
    known = DATASETS.get(name)
    if known and known.shipped:
        return RawSet(name, fetch_file(known))
    beside = []
    for root in (data_root, data_root / "tudataset") if data_root else ():
        for folder in (root / name, root / name / "raw", root):
            if any(folder.glob(f"{name}_*.txt")):
                return RawSet(name, folder)
        if (root / f"{name}.zip").is_file():
            return RawSet(name, root / f"{name}.zip")
        beside += [path.stem for path in root.glob("*.zip")]
    if not known:
        hint = "; others need --data-root with NAME.zip"
        hint = f" ({data_root} has no {name}.zip)" if data_root else hint
        raise unknown_dataset("graph", name, {*beside, *DATASETS}, SOURCES, data_root, hint)
    return RawSet(name, fetch_file(known))


def parse_tu(raw: RawSet, declared: GraphDataset | None) -> Graphs:
    indicator, labelled = (raw.needed(f"graph_{part}", 1)[:, 0] for part in ("indicator", "labels"))
    classes, y = np.unique(labelled, return_inverse=True)
    edges = raw.needed("A", 2)
    check_indicator(raw, indicator, len(y))
    check_edge_symmetry(raw, edges, indicator)
    labels = raw.numbers("node_labels", len(indicator))
    lacking = labels is None and declared is not None and declared.node_labels
    raw.refuse("node_labels", (lacking, "no such file"))
    node_ptr = np.searchsorted(indicator, np.arange(1, len(y) + 2))
    graphs = union(
        torch.zeros(len(indicator), 0) if labels is None else raw.one_hots("node_labels", labels),
        joined(edges),
        torch.from_numpy(node_ptr),
        torch.from_numpy(y.reshape(-1)),
    )
    counts = graph_counts(graphs)
    files = {"graphs": "graph_labels", "nodes": "graph_indicator", "edges": "A"}
    for (unit, suffix), size in zip(
        files.items(), declared.sizes if declared else (), strict=False
    ):
        fault = f"{counts[unit]} {unit}, {raw.name} has {size}"
        raw.refuse(suffix, (counts[unit] != size, fault))
    named = enumerate(() if labels is None or declared else labels.T)
    kinds = ((k, v) for k, c in named for v in range(int(c.min()), int(c.max()) + 1))
    columns = tuple(f"{k}:{v}" for k, v in kinds)  # what those of `one_hots` stand for
    return replace(graphs, labels=columns, classes=tuple(map(str, classes)))


def joined(edges: Array) -> Tensor:
    """(2, edges) numbers of nodes from 0, of the lines of a raw file."""
    return torch.from_numpy(np.ascontiguousarray(edges.T) - 1)


def check_indicator(raw: RawSet, indicator: Array, graphs: int) -> None:
    """Graph numbers ascend from 1 or above to the number of graphs.

    A graph without nodes may stand between others; after the last it would be a line of labels too
    many.
    """
    low, high = indicator.min(), indicator.max()
    counts = f"graph numbers {low}..{high}, but graph_labels has {graphs} lines"
    apart = bool((np.diff(indicator) < 0).any())
    raw.refuse(
        "graph_indicator",
        (low < 1 or high != graphs, counts),
        (apart, "nodes of one graph do not stand together"),
    )


def check_edge_symmetry(raw: RawSet, edges: Array, indicator: Array) -> None:
    nodes, low, high = len(indicator), edges.min(), edges.max()
    numbered = f"node numbers {low}..{high}, but there are {nodes} nodes"
    raw.refuse("A", (low < 1 or high > nodes, numbered))
    source, target = edges.T
    crossing = np.flatnonzero(indicator[source - 1] != indicator[target - 1]) + 1
    raw.refuse("A", (crossing.tolist(), "line {} joins two graphs"))
    n = nodes + 1
    forward, backward = (
        torch.from_numpy(key).unique() for key in (source * n + target, target * n + source)
    )
    lonely = [divmod(k, n) for k in forward[~torch.isin(forward, backward)].tolist()]
    raw.refuse("A", (lonely, "edge {}, {} is there in one direction only"))
