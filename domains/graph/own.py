"""Graphs that users bring: a folder of files, torch-geometric's sets, or a function of their own.

All become one union of graphs with a class each. An edge that is there in one direction only gets
the other one too, and is counted.
"""

import ast
import csv
import hashlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from contrastbench.domains import download, own
from contrastbench.domains.declaration import Source
from contrastbench.domains.graph import DATASETS, SOURCES, data
from contrastbench.domains.graph.data import MAX_FEATURES, Graphs, content_hash, pointers, union
from contrastbench.domains.reading import check_kind, contents, reading
from contrastbench.domains.report import Counted
from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses.source import Sources

LABELS_FILE = "labels.csv"  # beside graph files: the name of each with its class
GRAPH_FILES = (".graphml", ".csv", ".tsv", ".edges", ".txt")
ENDS = (  # names of an edge's two columns
    "source|src|from|u|node_?1|node_?a|head|start|sender|i",
    "target|dst|dest|destination|to|v|node_?2|node_?b|tail|end|receiver|j",
)
END_NAMES = [
    re.compile(rf"(?i)(?:node[_ ]?)?(?:{end})(?:[_ ]?(?:id|node|idx|index))?") for end in ENDS
]
NO_CLASS = ("", "nan", "none", "null", "n/a", "na", "?")
FURTHER = "edge lists whose further columns are left out"
DELIMITERS = {".csv": ",", ".tsv": "\t"}  # of edge lists; others have blanks
TWO_GRAPHS_FIX = "give at least two, as negatives of each other"
EDGE_DATA = ("edge_attr", "edge_weight")  # of torch-geometric's Data
ReadGraphs = tuple[Graphs, dict[str, Any]]  # and notes
LoadedGraphs = tuple[Graphs, str, dict[str, Any]]  # graphs, the sha256 of their content, notes


class Item(NamedTuple):
    """One graph as a user's reader returns it."""

    edges: Tensor  # (2, edges) numbers of its nodes
    x: Tensor  # (nodes, features)
    y: Any  # its class


def load_own_graphs(name: str, data_root: Path | None) -> LoadedGraphs:
    """A set of graphs, a user's own or by its name."""
    if not (parsed := own.parse_source(name, SOURCES)):
        return *data.load_graphs(name, data_root), {}
    source, what = parsed
    state = code_state if source.kind == own.PYTHON else own.source_state
    return load_unchanged(source, what, data_root, state(what.partition(":")[0], data_root))


def code_state(file: str, data_root: Path | None) -> str:
    """Return a hash of the Python files in the folder of one: their times may stay as they were."""
    digest = hashlib.sha256()
    for path in sorted(own.find_path(file, data_root).parent.glob("*.py")):
        with suppress(UserError):  # one that is needed is named where it is run
            digest.update(path.name.encode() + b"\0" + contents(path) + b"\0")
    return digest.hexdigest()


@lru_cache(maxsize=1)
def load_unchanged(source: Source, what: str, data_root: Path | None, state: str) -> LoadedGraphs:
    """Load like `load_own_graphs`, from memory if the source is unchanged since the last seed."""
    with own.reading_own(source, what if source.kind == own.PYTHON else f"{source.kind}:{what}"):
        read, notes = READERS[source.kind](what, data_root)
        graphs, added = both_ways(read)
        if not graphs.edge_index.numel():
            raise UserError(
                f"{source.kind}:{what} has no edge in any graph: give graphs with edges"
            )
        return graphs, content_hash(graphs), added | notes


def both_ways(graphs: Graphs) -> tuple[Graphs, dict[str, Any]]:
    """Edges in both directions, and how many were added."""
    edges = torch.cat([graphs.edge_index, graphs.edge_index.flip(0)], dim=1)
    whole = union(graphs.x, edges, graphs.node_ptr, graphs.y)
    whole = replace(whole, labels=graphs.labels, classes=graphs.classes)
    added = whole.edge_index.shape[1] - graphs.edge_index.shape[1]
    return whole, {"edges added in the other direction": added} if added else {}


def unite_graphs(items: Sequence[Item]) -> Graphs:
    """Unite many graphs with a class each into one object.

    Raises:
        UserError: fewer than two, or features that do not fit together.
    """
    if len(items) < 2:
        raise UserError(f"{len(items)} graphs: {TWO_GRAPHS_FIX}")
    return with_classes(items)


def with_classes(items: Sequence[Item]) -> Graphs:
    """Return many graphs, whose classes are numbered in their order."""
    classes = np.array([item.y for item in items], dtype=object)  # a long text takes its own room
    names, y = np.unique(classes, return_inverse=True)
    return replace(stack_graphs(items, torch.from_numpy(y)), classes=tuple(map(str, names)))


def stack_graphs(items: Sequence[Item], y: Tensor) -> Graphs:
    """Return many graphs and their classes as one object.

    Raises:
        UserError: features do not fit together.
    """
    widths = {item.x.shape[1] for item in items}
    if len(widths) > 1:
        raise UserError(
            f"graphs have {min(widths)} and {max(widths)} node features: give all the same"
        )
    ptr = pointers(torch.tensor([len(item.x) for item in items]))
    edges = [item.edges + start for item, start in zip(items, ptr, strict=False)]
    return union(torch.cat([item.x for item in items]), torch.cat(edges, 1), ptr, y)


def read_folder(what: str, data_root: Path | None) -> ReadGraphs:
    """A folder of TU text files, or of GraphML files or edge lists with their classes."""
    folder = own.find_path(what, data_root, Path.is_dir)
    if files := files_of(folder):
        return data.parse_tu(*files, None), {}
    if not (folder / LABELS_FILE).is_file():
        fix = f"neither NAME_graph_indicator.txt nor {LABELS_FILE} with FILE,CLASS in each line"
        raise UserError(f"{folder} has {fix}")
    rows = classes_in(folder)
    return united_files(folder, [file for file, _ in rows], [y for _, y in rows])


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


def classes_in(folder: Path) -> list[list[str]]:
    """The lines of the file of classes: a file and its class each."""
    lines = contents(folder / LABELS_FILE).decode("utf-8-sig").splitlines()
    rows = [[field.strip() for field in row] for row in csv.reader(lines) if row]
    if rows and not Path(rows[0][0]).suffix and not (folder / rows[0][0]).is_file():
        del rows[0]  # its header
    wrong = next((row for row in rows if len(row) != 2), None)
    if wrong:
        raise UserError(f"{folder / LABELS_FILE}: {','.join(wrong)!r} is not FILE,CLASS")
    if without := next((file for file, y in rows if y.lower() in NO_CLASS), ""):
        raise UserError(f"{folder / LABELS_FILE}: {without} has no class: give one, or remove it")
    if len(rows) < 2:
        raise UserError(f"{folder / LABELS_FILE} names {len(rows)} graphs: {TWO_GRAPHS_FIX}")
    return rows


def united_files(folder: Path, names: Sequence[str], classes: Sequence[str]) -> ReadGraphs:
    """Return the graphs of files with their classes."""
    found = [read_networkx(listed_file(folder, name)) for name in names]
    wide = [name for name, graph in zip(names, found, strict=True) if graph.graph.get(FURTHER)]
    kinds = sorted({label for graph in found for _, label in graph.nodes(data="label")} - {None})
    nodes = sum(map(len, found))
    if len(kinds) * nodes > MAX_FEATURES:
        raise UserError(f"{folder}: {nodes} nodes have {len(kinds)} labels, which are too many")
    number = {kind: k for k, kind in enumerate(kinds)}
    named = zip(names, found, classes, strict=True)
    items = [item(folder / name, graph, number, y) for name, graph, y in named]
    graphs = replace(with_classes(items), labels=tuple(kinds))
    return graphs, {FURTHER: Counted(len(wide), wide[0])} if wide else {}


def listed_file(folder: Path, name: str) -> Path:
    """Return the file of a graph that the file of classes names.

    Raises:
        UserError: there is none.
    """
    if not (folder / name).is_file():
        raise UserError(f"{folder / LABELS_FILE} names {name}, and {folder} has no such file")
    return folder / name


def folder_of_any(what: str, data_root: Path | None) -> tuple[Graphs, list[str] | None]:
    """Return the graphs of a folder and the names of their files, with or without classes."""
    folder = own.find_path(what, data_root, Path.is_dir)
    if any(folder.glob("*_graph_indicator.txt")):
        return both_ways(read_folder(what, data_root)[0])[0], None
    if (folder / LABELS_FILE).is_file():
        names = [file for file, _ in classes_in(folder)]
    else:
        names = [name for name in own.files_below(folder) if Path(name).suffix in GRAPH_FILES]
    if not names:
        raise UserError(f"{folder} has no {', '.join(GRAPH_FILES)} files: give a folder with some")
    return both_ways(united_files(folder, names, [""] * len(names))[0])[0], names


def read_networkx(path: Path) -> Any:
    """A networkx graph of a GraphML file, or of a list of edges; labels are texts."""
    import networkx as nx

    with reading(path, "repair or replace it", "cannot be read"):
        if path.suffix.lower() != ".graphml":
            check_kind(path, "a list of edges", "give two columns of nodes")
            pairs, further = edges(contents(path).decode("utf-8-sig"), path.suffix.lower())
            if not pairs:
                fix = f"add one, or take it out of {LABELS_FILE}"
                raise UserError(f"{path} has no edge, and so no node: {fix}")
            return nx.Graph(pairs, **{FURTHER: further})
        graph = nx.read_graphml(path)
    for _, values in graph.nodes(data=True):
        if "label" in values:
            values["label"] = str(values["label"])
    return graph


def edges(text: str, suffix: str) -> tuple[list[tuple[str, str]], bool]:
    r"""The nodes of each line of a list of edges, and whether it has further columns.

    Columns named source and target, or the like, hold the nodes, otherwise the first two do. What
    follows # is left out.

    Raises:
        ValueError: a line does not name two nodes, or a first line of names does not tell them.

    >>> edges("id, source, target\n7, 0, 1\n8, 1, 2", ".csv")
    ([('0', '1'), ('1', '2')], True)
    """
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    rows = [[word.strip() for word in line.split(DELIMITERS.get(suffix))] for line in lines if line]
    first, second = end_columns(rows)
    named = rows[has_header(rows) :]
    for row in named:
        if len(row) <= max(first, second) or not (row[first] and row[second]):
            raise ValueError(f"{' '.join(row)!r} does not name two nodes")
    return [(row[first], row[second]) for row in named], any(len(row) > 2 for row in rows)


def end_columns(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the places of the two nodes of an edge in a line.

    Raises:
        ValueError: the first line names three columns or more, and none is source or target.
    """
    if not rows or not has_header(rows):
        return 0, 1
    places = [next((k for k, w in enumerate(rows[0]) if n.fullmatch(w)), None) for n in END_NAMES]
    if None not in places:
        return int(places[0] or 0), int(places[1] or 0)
    if len(rows[0]) > 2:
        raise ValueError(f"{', '.join(rows[0])!r} does not say which are source and target")
    return 0, 1


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line names columns: words above numbers, or usual ones.

    >>> has_header([("source", "target"), ("a", "b")]), has_header([("a", "b"), ("b", "c")])
    (True, False)
    """
    if not rows:
        return False
    first, rest = rows[0], rows[1:]
    nodes = {node for row in rest for node in row}
    usual = all(any(name.fullmatch(word) for word in first) for name in END_NAMES)
    if usual and nodes.isdisjoint(first):
        return True
    numbers = all(word.isdecimal() for row in rest for word in row[:2])
    return bool(rest) and numbers and not all(word.isdecimal() for word in first[:2])


def item(path: Path, graph: Any, number: dict[str, int], y: str) -> Item:
    """A file's networkx graph with its nodes' labels one-hot.

    Raises:
        UserError: some nodes have labels, and some have none.
    """
    place = {node: k for k, node in enumerate(graph)}
    edges = torch.tensor([(place[a], place[b]) for a, b in graph.edges()], dtype=torch.long)
    labels = [label for _, label in graph.nodes(data="label")]
    if number and None in labels:
        node = list(graph)[labels.index(None)]
        raise UserError(f"{path}: node {node} has no label, others have one")
    x = one_hot(torch.tensor([number[k] for k in labels]), len(number)) if number else None
    return Item(edges.view(-1, 2).T, torch.zeros(len(place), 0) if x is None else x.float(), y)


def read_pyg(what: str, data_root: Path | None) -> ReadGraphs:
    """A set of torch-geometric with classes."""
    return of_data(what, pyg_data(what, data_root))


def pyg_data(what: str, data_root: Path | None) -> Iterable[Any]:
    """A set of torch-geometric, which downloads it where it is not in its root."""
    with without_the_compilers_line():
        from torch_geometric import datasets
        from torch_geometric.data import Dataset

    name, arguments, keywords = class_and_arguments(what)
    made = getattr(datasets, name, None) if name in datasets.__all__ else None
    if not (isinstance(made, type) and issubclass(made, Dataset)):
        raise unknown("set of torch_geometric.datasets", name, datasets.__all__)
    if "root" in inspect.signature(made).parameters and not arguments:
        root = (data_root or download.cache_folder()) / "pyg" / name
        keywords = {"root": str(root), **keywords}
    with warnings.catch_warnings():  # of what it is going to rename
        warnings.simplefilter("ignore")
        return list(made(*arguments, **keywords))


@contextmanager
def without_the_compilers_line() -> Iterator[None]:
    """Leave out torch's line that its old compiler is deprecated, which torch-geometric calls."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        yield


def class_and_arguments(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """A class with its arguments, which are literals: nothing is evaluated.

    >>> class_and_arguments("TUDataset(name='MUTAG', use_node_attr=True)")
    ('TUDataset', [], {'name': 'MUTAG', 'use_node_attr': True})
    """
    wrong = UserError(f"pyg:{text}: give CLASS(KEY=VALUE, ...) with numbers and quoted texts")
    try:
        node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Name):
            return node.id, [], {}
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise wrong
        arguments = [ast.literal_eval(value) for value in node.args]
        keywords = {str(pair.arg): ast.literal_eval(pair.value) for pair in node.keywords}
    except (SyntaxError, ValueError, MemoryError, RecursionError, TypeError):
        raise wrong from None
    return node.func.id, arguments, keywords


def read_function(what: str, data_root: Path | None) -> ReadGraphs:
    """Run a user's own function and return its graphs with their classes."""
    return of_data(what, function_data(what, data_root))


def function_data(what: str, data_root: Path | None) -> Iterable[Any]:
    """Run a user's own function and return its graphs."""
    file, _, function = what.partition(":")
    path = own.find_path(file, data_root)
    with without_the_compilers_line(), users_code(f"run {what}"):
        known = vars(Sources().run(path))
        if not callable(known.get(function)):
            made = [name for name, value in known.items() if inspect.isfunction(value)]
            raise unknown(f"function in {path}", function, made)
        return list(known[function]())


def of_data(what: str, graphs: Iterable[Any]) -> ReadGraphs:
    """Graphs of torch-geometric's `Data` with `edge_index`, `y` and perhaps `x`.

    Raises:
        UserError: one is no such graph, or has no class.
    """
    items, wide = [], []
    for k, graph in enumerate(graphs):
        y = getattr(graph, "y", None)
        item = item_of(f"{what}: graph {k}", graph)
        if y is None or torch.as_tensor(y).numel() != 1 or not float(y).is_integer():
            fix = "give each graph one class, a whole number"
            raise UserError(f"{what}: graph {k} has y={y}: {fix}")
        items.append(item._replace(y=int(y)))
        wide += [f"graph {k}"] * any(getattr(graph, key, None) is not None for key in EDGE_DATA)
    note = "graphs whose edge attributes are left out"
    return unite_graphs(items), {note: Counted(len(wide), wide[0])} if wide else {}


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
    """The parts of a `Data` that are used, but its class."""
    edges, x = (getattr(graph, key, None) for key in ("edge_index", "x"))
    nodes = getattr(graph, "num_nodes", None)
    if edges is None or not nodes or edges.dim() != 2 or len(edges) != 2:
        raise UserError(f"{name} is no torch_geometric.data.Data with nodes and an edge_index")
    check_node_numbers(name, edges, nodes)
    x = torch.zeros(nodes, 0) if x is None else features_of(name, x, nodes)
    return Item(edges.long(), x, None)


def check_node_numbers(name: str, edges: Tensor, nodes: int) -> None:
    """Raise unless edges are pairs of node numbers; half a node would be cut to a whole one."""
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise UserError(f"{name} has an edge_index of {edges.dtype}: give whole numbers")
    ends = (int(edges.min()), int(edges.max())) if edges.numel() else ()
    wrong = [end for end in ends if not 0 <= end < nodes]
    if wrong:
        raise UserError(f"{name} has {nodes} nodes and an edge of node {wrong[0]}")


def features_of(name: str, x: Any, nodes: int) -> Tensor:
    """(nodes, features) of a `Data` whose `x` has a row for each node."""
    x = torch.as_tensor(x).detach()
    if not x.dim() or len(x) != nodes or x.is_complex():
        found = f"{nodes} nodes and x of {x.dtype} and shape {tuple(x.shape)}"
        raise UserError(f"{name} has {found}: give each node a row of numbers")
    x = x.reshape(nodes, -1).float()
    if not bool(x.isfinite().all()):
        raise UserError(f"{name} has node features that are not finite")
    return x


ITEM_READERS: dict[str, Callable[[str, Path | None], Iterable[Any]]] = {
    "pyg": pyg_data,
    own.PYTHON: function_data,
}
READERS: dict[str, Callable[[str, Path | None], ReadGraphs]] = {
    "folder": read_folder,
    "pyg": read_pyg,
    own.PYTHON: read_function,
}
