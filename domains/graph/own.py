"""Graphs that users bring: a folder of files, torch-geometric's sets, or a function of their own.

All become one union of graphs with a class each. An edge that is there in one direction only gets
the other one too, and is counted.
"""

import csv
import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from contrastbench.domains import own
from contrastbench.domains.graph import DATASETS, MOLECULES, SOURCES, data
from contrastbench.domains.graph.collected import declared_file
from contrastbench.domains.graph.data import MAX_FEATURES, Graphs, content_hash, pointers, union
from contrastbench.domains.graph.files import GRAPH_FILES, LABELS_FILE, read_file
from contrastbench.domains.graph.molecules import read_smiles
from contrastbench.domains.graph.tasks import UNKNOWN, answers
from contrastbench.domains.reading import contents, first_double, reading
from contrastbench.domains.report import Counted
from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses.source import Sources

FURTHER = "files whose further columns or attributes are left out"
TWO_GRAPHS_FIX = "give at least two, as negatives of each other"
EDGE_DATA = ("edge_attr", "edge_weight")  # of torch-geometric's Data
ReadGraphs = tuple[Graphs, dict[str, Any]]  # and notes
Reader = Callable[..., ReadGraphs]  # of what a source names and the data root
LoadedGraphs = tuple[Graphs, str, dict[str, Any]]  # graphs, the sha256 of their content, notes


class Item(NamedTuple):
    """One graph as a user's reader returns it."""

    edges: Tensor  # (2, edges) numbers of its nodes
    x: Tensor  # (nodes, features)
    y: Any  # its class, or a tuple of answers to tasks


def load_own_graphs(
    name: str, data_root: Path | None, edges: bool = False, target: str | None = None
) -> LoadedGraphs:
    """A set of graphs, a user's own or by its name.

    Args:
        name: of the set.
        data_root: a folder that may hold it.
        edges: whether edges have their features.
        target: the columns of a CSV file that are answers.
    """
    graphs, digest, notes = load_any(name, data_root, target)
    if not edges:
        return replace(graphs, edge_attr=graphs.edge_attr[:, :0]), digest, notes
    if not graphs.edge_attr.shape[1]:
        graphs = data.with_edge_labels(graphs, name, tu_files(name, data_root))
    values = graphs.edge_attr.contiguous().numpy().tobytes()
    return graphs, hashlib.sha256(digest.encode() + values).hexdigest(), notes


def load_any(name: str, data_root: Path | None, target: str | None = None) -> LoadedGraphs:
    """A set of graphs, a user's own or by its name, as it was read."""
    known, parsed = DATASETS.get(name), own.parse_source(name, SOURCES)
    if known and known.target:
        parsed = MOLECULES, str(declared_file(known, data_root))
        target = known.target if target is None else target
    source, what = parsed or (None, name)
    if target is not None and source is not MOLECULES:
        raise UserError(f"{name} has no columns: leave out --target")
    if source is None:
        return *data.load_graphs(name, data_root), {}
    read = READERS[source.kind]
    if source.runs_code:  # it may import what was edited, or draw at random
        return read_own(what, what, read, data_root)
    return own.read_once(source, what, data_root, read_own, name, read, data_root, target)


def read_own(
    what: str, name: str, read: Reader, data_root: Path | None, target: str | None = None
) -> LoadedGraphs:
    """Read a user's graphs; edges get both directions.

    Raises:
        UserError: there is no edge.
    """
    given, notes = read(what, data_root, *([] if target is None else [target]))
    graphs, added = both_ways(given)
    if not graphs.edge_index.numel():
        raise UserError(f"{name} has no edge in any graph: give graphs with edges")
    return graphs, content_hash(graphs), added | notes


def both_ways(graphs: Graphs) -> tuple[Graphs, dict[str, Any]]:
    """Edges in both directions, and how many were added."""
    edges = torch.cat([graphs.edge_index, graphs.edge_index.flip(0)], dim=1)
    attr = graphs.edge_attr.repeat(2, 1)
    whole = union(graphs.x, edges, graphs.node_ptr, graphs.y, attr)
    named = {key: getattr(graphs, key) for key in ("labels", "classes", "smiles")}
    whole = replace(whole, **named)
    added = whole.edge_index.shape[1] - graphs.edge_index.shape[1]
    return whole, {"edges added in the other direction": added} if added else {}


def with_classes(items: Sequence[Item]) -> ReadGraphs:
    """Return many graphs, whose classes are numbered in their order; or with answers to tasks."""
    edges = sum(item.edges.shape[1] for item in items)
    if isinstance(items[0].y, tuple):
        widths = {len(item.y) for item in items}
        if len(widths) > 1:
            raise UserError(f"graphs have {min(widths)} and {max(widths)} labels: give as many")
        graphs = stack_graphs(items, torch.tensor([item.y for item in items]))
        return graphs, removed(graphs, edges)
    classes = np.array([item.y for item in items], dtype=object)  # a long text takes its own room
    names, y = np.unique(classes, return_inverse=True)
    graphs = replace(stack_graphs(items, torch.from_numpy(y)), classes=tuple(map(str, names)))
    return graphs, removed(graphs, edges)


def stack_graphs(items: Sequence[Item], y: Tensor) -> Graphs:
    """Return many graphs and their classes as one object.

    Raises:
        UserError: features do not fit together.
    """
    widths = [item.x.shape[1] for item in items]
    if other := next((k for k, width in enumerate(widths) if width != widths[0]), None):
        found = f"graph 0 has {widths[0]} node features, and graph {other} has {widths[other]}"
        raise UserError(f"{found}: give all the same")
    ptr = pointers(torch.tensor([len(item.x) for item in items]))
    edges = [item.edges + start for item, start in zip(items, ptr, strict=False)]
    return union(torch.cat([item.x for item in items]), torch.cat(edges, 1), ptr, y)


def read_folder(what: str, data_root: Path | None) -> ReadGraphs:
    """A folder of TU text files, or of GraphML files or edge lists with their classes."""
    folder = own.find_path(what, data_root, Path.is_dir)
    if files := files_of(folder):
        graphs = data.parse_tu(*files, None)
        return graphs, removed(graphs, (files[1]("A") or b"").count(b","))
    if not (folder / LABELS_FILE).is_file():
        fix = f"neither NAME_graph_indicator.txt nor {LABELS_FILE} with FILE,CLASS in each line"
        raise UserError(f"{folder} has {fix}")
    rows = classes_in(folder)
    names = [file for file, _ in rows]
    graphs, notes = united_files(folder, names, [y for _, y in rows])
    others = sorted({*graph_files(folder)} - {*names, LABELS_FILE})
    if others:
        notes[f"graph files that {LABELS_FILE} does not name"] = Counted(len(others), others[0])
    return graphs, notes


def graph_files(folder: Path) -> list[str]:
    """Return the names of the files in a folder that are graphs by their endings."""
    return [name for name in own.files_below(folder) if Path(name).suffix in GRAPH_FILES]


def removed(graphs: Graphs, edges: int) -> dict[str, int]:
    """Return a note on loops and repeated edges, which graphs of so many do not have."""
    left_out = edges - graphs.edge_index.shape[1]
    return {"loops and repeated edges, left out": left_out} if left_out > 0 else {}


def tu_files(dataset: str, data_root: Path | None) -> tuple[str, data.RawReader] | None:
    """Return the name and the raw files of a set in the TU collection's format."""
    parsed = own.parse_source(dataset, SOURCES)
    if parsed is None:
        embedded = dataset in DATASETS and not DATASETS[dataset].url
        return None if embedded else (dataset, data.open_raw(dataset, data_root))
    source, what = parsed
    return files_of(own.find_path(what, data_root, Path.is_dir)) if source.folder else None


def files_of(folder: Path) -> tuple[str, data.RawReader] | None:
    """Return the name and the raw files of the one TU set in a folder.

    Raises:
        UserError: there are several.
    """
    tu = sorted(folder.glob("*_graph_indicator.txt"))
    if len(tu) > 1:
        names = ", ".join(path.name.removesuffix("_graph_indicator.txt") for path in tu)
        raise UserError(
            f"{folder} holds several data sets ({names}): move each into a folder of its own"
        )
    name = tu[0].name.removesuffix("_graph_indicator.txt") if tu else ""
    return (name, data.folder_reader(folder, name)) if tu else None


def classes_in(folder: Path) -> list[tuple[str, Any]]:
    """The lines of the file of classes: a file and its class each, or its answers to tasks."""
    with reading(folder / LABELS_FILE, "save it as UTF-8", "cannot be read"):
        lines = contents(folder / LABELS_FILE).decode("utf-8-sig").splitlines()
    rows = [[field.strip() for field in row] for row in csv.reader(lines) if row]
    if rows and not Path(rows[0][0]).suffix and not (folder / rows[0][0]).is_file():
        del rows[0]  # its header
    wide = max(2, *map(len, rows)) if rows else 2
    wrong = next((row for row in rows if len(row) != wide), None)
    if wrong:
        raise UserError(f"{folder / LABELS_FILE}: {','.join(wrong)!r} is not FILE,CLASS")
    if len(rows) < 2:
        raise UserError(f"{folder / LABELS_FILE} names {len(rows)} graphs: {TWO_GRAPHS_FIX}")
    if double := first_double(row[0] for row in rows):
        raise UserError(f"{folder / LABELS_FILE} names {double} twice: give it one class")
    if wide > 2:
        return [(row[0], answers(f"{folder / LABELS_FILE}: {row[0]}", row[1:])) for row in rows]
    if without := next((file for file, y in rows if y.lower() in UNKNOWN), ""):
        raise UserError(f"{folder / LABELS_FILE}: {without} has no class: give one, or remove it")
    return [(file, y) for file, y in rows]


def united_files(folder: Path, names: Sequence[str], classes: Sequence[Any]) -> ReadGraphs:
    """Return the graphs of files with their classes, nodes' labels one-hot."""
    if missing := [name for name in names if not (folder / name).is_file()]:
        fault = f"names {missing[0]}, and {folder} has no such file: add it, or remove the line"
        raise UserError(f"{folder / LABELS_FILE} {fault}")
    by_name = {name: read_file(folder / name) for name in names}
    kinds = sorted({label for graph in by_name.values() for label in graph.labels} - {""})
    nodes = sum(len(by_name[name].labels) for name in names)
    if len(kinds) * nodes > MAX_FEATURES:
        raise UserError(f"{folder}: {nodes} nodes have {len(kinds)} labels, which are too many")
    number = {kind: k for k, kind in enumerate(kinds)}
    items = []
    for name, y in zip(names, classes, strict=True):
        labels, edges, _ = by_name[name]
        if kinds and "" in labels:
            fault = f"node {labels.index('')} has no label, others have one"
            raise UserError(f"{folder / name}: {fault}")
        x = one_hot(torch.tensor([number[k] for k in labels]), len(kinds)) if kinds else None
        x = torch.zeros(len(labels), 0) if x is None else x.float()
        items.append(Item(torch.tensor(edges, dtype=torch.long).view(-1, 2).T, x, y))
    wide = [name for name in names if by_name[name].further]
    graphs, notes = with_classes(items)
    graphs = replace(graphs, labels=tuple(kinds))
    return graphs, notes | ({FURTHER: Counted(len(wide), wide[0])} if wide else {})


def folder_of_any(what: str, data_root: Path | None) -> tuple[Graphs, list[str] | None]:
    """Return the graphs of a folder and the names of their files, with or without classes."""
    folder = own.find_path(what, data_root, Path.is_dir)
    if any(folder.glob("*_graph_indicator.txt")):
        return both_ways(read_folder(what, data_root)[0])[0], None
    if (folder / LABELS_FILE).is_file():
        names = [file for file, _ in classes_in(folder)]
    else:
        names = graph_files(folder)
    if not names:
        raise UserError(f"{folder} has no {', '.join(GRAPH_FILES)} files: give a folder with some")
    return both_ways(united_files(folder, names, [""] * len(names))[0])[0], names


def read_function(what: str, data_root: Path | None) -> ReadGraphs:
    """Run a user's own function and return its graphs with their classes."""
    return of_data(what, function_data(what, data_root))


def function_data(what: str, data_root: Path | None) -> list[Any]:
    """Run a user's own function and return its graphs."""
    file, _, function = what.partition(":")
    path = own.find_path(file, data_root)
    with warnings.catch_warnings(), users_code(f"run {what}"):
        # torch-geometric calls torch's old compiler
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        known = vars(Sources().run(path))
        if not callable(known.get(function)):
            made = [name for name, value in known.items() if inspect.isfunction(value)]
            raise unknown(f"function in {path}", function, made)
        return list(known[function]())


def of_data(what: str, graphs: Iterable[Any]) -> ReadGraphs:
    """Graphs of torch-geometric's `Data` with `edge_index`, `y` and perhaps `x`.

    Raises:
        UserError: there are fewer than two, or one is no such graph, or has no class.
    """
    items, wide = [], []
    for k, graph in enumerate(graphs):
        y = getattr(graph, "y", None)
        item = item_of(f"{what}: graph {k}", graph)
        given = [] if y is None else torch.as_tensor(y).flatten().tolist()
        if len(given) > 1:
            y = answers(f"{what}: graph {k}", given)
        elif given and float(given[0]).is_integer():
            y = int(given[0])
        else:
            fix = "give each graph one class, a whole number"
            raise UserError(f"{what}: graph {k} has y={y}: {fix}")
        items.append(item._replace(y=y))
        wide += [f"graph {k}"] * any(getattr(graph, key, None) is not None for key in EDGE_DATA)
    if len(items) < 2:
        raise UserError(f"{what}: {len(items)} graphs: {TWO_GRAPHS_FIX}")
    note, (made, notes) = "graphs whose edge attributes are left out", with_classes(items)
    return made, notes | ({note: Counted(len(wide), wide[0])} if wide else {})


def without_classes(what: str, graphs: Sequence[Any]) -> Graphs:
    """Graphs of torch-geometric's `Data` with `edge_index` and perhaps `x`.

    Raises:
        UserError: there is none, or one is no such graph.
    """
    if not graphs:
        raise UserError(f"{what} has no graphs: give a list of torch_geometric.data.Data")
    items = [item_of(f"{what}: graph {k}", graph) for k, graph in enumerate(graphs)]
    return both_ways(stack_graphs(items, torch.zeros(len(items), dtype=torch.long)))[0]


def item_of(name: str, graph: Any) -> Item:
    """The parts of a `Data` that are used, but its class.

    Raises:
        UserError: it is none, or its nodes are not numbered, or have no features that are numbers.
    """
    edges, x = (getattr(graph, key, None) for key in ("edge_index", "x"))
    nodes = getattr(graph, "num_nodes", None)
    if edges is None or not nodes or edges.dim() != 2 or len(edges) != 2:
        raise UserError(f"{name} is no torch_geometric.data.Data with nodes and an edge_index")
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise UserError(f"{name} has an edge_index of {edges.dtype}: give whole numbers")
    if wrong := edges[(edges < 0) | (edges >= nodes)].tolist():
        raise UserError(f"{name} has {nodes} nodes and an edge of node {wrong[0]}: correct it")
    x = torch.zeros(nodes, 0) if x is None else torch.as_tensor(x).detach()
    if not x.dim() or len(x) != nodes or x.is_complex():
        sizes = f"{nodes} nodes and x of {x.dtype} and shape {tuple(x.shape)}"
        raise UserError(f"{name} has {sizes}: give each node a row of numbers")
    if not bool(x.isfinite().all()):
        raise UserError(f"{name} has node features that are not finite")
    return Item(edges.long(), x.reshape(nodes, -1).float(), None)


READERS: dict[str, Reader] = {
    "folder": read_folder,
    own.PYTHON: read_function,
    MOLECULES.kind: read_smiles,
}
