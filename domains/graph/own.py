"""Graphs that users bring: a folder of files, torch-geometric's sets, or a function of their own.

All become one union of graphs with a class each. An edge that is there in one direction only gets
the other one too, and is counted.
"""

import csv
import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.download import cache_folder
from contrastbench.domains.graph import DATASETS, MOLECULES, SOURCES, data
from contrastbench.domains.graph.data import Graphs, RawSet, content_hash, pointers, union
from contrastbench.domains.graph.files import GRAPH_FILES, LABELS_FILE, read_file
from contrastbench.domains.graph.generated import declared_file
from contrastbench.domains.graph.molecules import known_column, read_smiles
from contrastbench.domains.graph.tasks import UNKNOWN, answers
from contrastbench.domains.reading import check_kind, contents, doubles, is_number, reading, refuse
from contrastbench.domains.samples import Counted
from contrastbench.errors import check_known, unknown, users_code
from contrastbench.losses.source import Sources

FURTHER = "columns or attributes, left out"
TWO_GRAPHS_FIX = "give at least two, as negatives of each other"
READ = ("edge_index", "x", "y", "num_nodes")  # of torch-geometric's Data
ReadGraphs = tuple[Graphs, dict[str, Any]]  # and notes
Reader = Callable[..., ReadGraphs]  # of what a source names and the data root
Name = str | None  # of a field or a column
LoadedGraphs = tuple[Graphs, str, dict[str, Any]]  # graphs, the sha256 of their content, notes


class Item(NamedTuple):
    """One graph as a user's reader returns it."""

    edges: Tensor  # (2, edges) numbers of its nodes
    x: Tensor  # (nodes, features)
    y: Any  # its class, or a tuple of answers to tasks


def load_own_graphs(
    name: str, data_root: Path | None, edges: bool = False, target: Name = None, groups: Name = None
) -> LoadedGraphs:
    """A set of graphs, a user's own or by its name; edges may have their features.

    Of a user's own, target names the columns of a CSV file that are answers, and groups the field
    or column that names the group of each.
    """
    known = DATASETS.get(name)
    refuse(name, ((known and groups) or (), " has no groups: leave --recipe groups out"))
    if known and known.target:
        target = known.target if target is None else target
        name = f"{MOLECULES.kind}:{declared_file(known, data_root)}"
    asked = () if target is None else (target,)
    tabled = name.startswith(f"{MOLECULES.kind}:")
    refuse(name, (asked and not tabled, " has no target column: leave --target out"))
    graphs, digest, notes = ADAPTER.read(name, data_root, groups, *asked)
    if not edges:
        return replace(graphs, edge_attr=graphs.edge_attr[:, :0]), digest, notes
    if not graphs.edge_attr.shape[1]:
        graphs = data.with_edge_labels(graphs, name, tu_files(name, data_root))
    values = graphs.edge_attr.contiguous().numpy().tobytes()
    return graphs, hashlib.sha256(digest.encode() + values).hexdigest(), notes


def read_own(kind: str, what: str, data_root: Path | None, *asked: str | None) -> LoadedGraphs:
    given, notes = READERS[kind](what, data_root, *asked)
    graphs, added = both_ways(given)
    name = what if kind == own.PYTHON else f"{kind}:{what}"
    empty = not graphs.edge_index.numel()
    refuse(name, (empty, " has no edge in any graph: give graphs with edges"))
    return graphs, content_hash(graphs), added | notes


def both_ways(graphs: Graphs) -> tuple[Graphs, dict[str, Any]]:
    edges = torch.cat([graphs.edge_index, graphs.edge_index.flip(0)], dim=1)
    attr = graphs.edge_attr.repeat(2, 1)
    made = union(graphs.x, edges, graphs.node_ptr, graphs.y, attr)
    edges, attr = made.edge_index, made.edge_attr
    whole = replace(graphs, edge_index=edges, edge_ptr=made.edge_ptr, edge_attr=attr)
    added = whole.edge_index.shape[1] - graphs.edge_index.shape[1]
    return whole, {"edges added in the other direction": added} if added else {}


def with_classes(items: Sequence[Item]) -> ReadGraphs:
    if isinstance(items[0].y, tuple):
        low, high = (pick(len(item.y) for item in items) for pick in (min, max))
        refuse("graphs", (low < high, f" have {low} and {high} labels: give as many"))
        graphs = stack_graphs(items, torch.tensor([item.y for item in items]))
    else:
        classes = np.array([item.y for item in items], dtype=object)  # a long text has its own room
        names, y = np.unique(classes, return_inverse=True)
        graphs = replace(stack_graphs(items, torch.from_numpy(y)), classes=tuple(map(str, names)))
    return graphs, removed(graphs, sum(item.edges.shape[1] for item in items))


def stack_graphs(items: Sequence[Item], y: Tensor) -> Graphs:
    widths = [item.x.shape[1] for item in items]
    others = [(k, width) for k, width in enumerate(widths) if width != widths[0]]
    first = f"graph 0 has {widths[0]} node features"
    refuse(first, (others, ", and graph {} has {}: give all the same"))
    ptr = pointers(torch.tensor([len(item.x) for item in items]))
    edges = [item.edges + start for item, start in zip(items, ptr, strict=False)]
    return union(torch.cat([item.x for item in items]), torch.cat(edges, 1), ptr, y)


def read_folder(what: str, data_root: Path | None, groups: str | None = None) -> ReadGraphs:
    folder = own.find_path(what, data_root, Path.is_dir)
    if raw := raw_set(folder):
        refuse(folder, (groups or (), f" is a TU folder, of no fields: leave groups={groups} out"))
        graphs = data.parse_tu(raw, None)
        return graphs, removed(graphs, (raw.read("A") or b"").count(b","))
    lacking = f"neither NAME_graph_indicator.txt nor {LABELS_FILE} with FILE,CLASS in each line"
    refuse(folder, (not (folder / LABELS_FILE).is_file(), f" has {lacking}"))
    rows, named = classes_in(folder, groups)
    names = [file for file, _ in rows]
    graphs, notes = united_files(folder, names, [y for _, y in rows])
    graphs = replace(graphs, groups=named)
    read = {*map(Path, [*names, LABELS_FILE])}  # a list may say ./FILE
    if others := [name for name in graph_files(folder) if Path(name) not in read]:
        notes[f"graph files that {LABELS_FILE} does not name"] = Counted.of(others)
    return graphs, notes


def graph_files(folder: Path) -> list[str]:
    return [name for name in own.files_below(folder) if Path(name).suffix in GRAPH_FILES]


def removed(graphs: Graphs, edges: int) -> dict[str, int]:
    """Return a note on loops and repeated edges, which graphs of so many do not have."""
    left_out = edges - graphs.edge_index.shape[1]
    return {"loops and repeated edges, left out": left_out} if left_out > 0 else {}


def tu_files(dataset: str, data_root: Path | None) -> RawSet:
    """Return the files of a set in the TU collection's format; of others there are none."""
    parsed, none = own.parse_source(dataset, SOURCES), RawSet(dataset)
    if parsed is None:
        embedded = dataset in DATASETS and not DATASETS[dataset].url
        return none if embedded else data.open_raw(dataset, data_root)
    source, what = parsed
    folder = own.find_path(what, data_root, Path.is_dir) if source.folder else None
    return (folder and raw_set(folder)) or none


def raw_set(folder: Path) -> RawSet | None:
    tu = sorted(folder.glob("*_graph_indicator.txt"))
    names = [path.name.removesuffix("_graph_indicator.txt") for path in tu]
    several = f" holds several data sets ({', '.join(names)}): move each into a folder of its own"
    refuse(folder, (len(tu) > 1, several))
    return RawSet(names[0], folder) if tu else None


def classes_in(folder: Path, groups: Name) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """Read the file of classes: each file with its class, or its answers; and their groups."""
    path = folder / LABELS_FILE
    rows, named = rows_of_files(path, groups)
    wide = max(2, mode([*map(len, rows)] or [2]))
    refuse(
        path,
        ([repr(",".join(r)) for r in rows if len(r) != wide], ": {} is not FILE,CLASS"),
        (len(rows) < 2, f" names {len(rows)} graphs: {TWO_GRAPHS_FIX}"),
        (doubles(str(Path(row[0])) for row in rows), " names {} twice: give it one class"),
    )
    if wide > 2:
        return [(row[0], answers(f"{path}: {row[0]}", row[1:])) for row in rows], named
    classes = [(file, y) for file, y in rows]
    numbers = [y for _, y in classes if is_number(y) and not float(y).is_integer()]
    measured = numbers if len({*numbers}) > len(classes) / 2 else ()
    refuse(path, (measured, " has numbers such as {}, no classes: write a class for each"))
    without = [file for file, y in classes if y.lower() in UNKNOWN]
    refuse(path, (without, ": {} has no class: give one, or remove it"))
    return classes, named


def rows_of_files(path: Path, groups: Name) -> tuple[list[list[str]], tuple[str, ...]]:
    with reading(path, "save it as UTF-8", "cannot be read"):
        check_kind(path, "a table of text", "save it as CSV")
        lines = contents(path).decode("utf-8-sig").splitlines()
    rows = [[field.strip() for field in row] for row in csv.reader(lines) if row]
    headed = rows and Path(rows[0][0]).suffix not in GRAPH_FILES
    header = rows.pop(0) if headed and not (path.parent / rows[0][0]).is_file() else []
    place = header.index(known_column(path, groups, header)) if groups else 0
    short = [repr(",".join(row)) for row in rows if not row[place:]]
    refuse(path, (short, f": {{}} has no {groups}: give each file one"))
    return rows, tuple(row.pop(place) for row in rows) if groups else ()


def united_files(folder: Path, names: Sequence[str], classes: Sequence[Any]) -> ReadGraphs:
    missing = [name for name in names if not (folder / name).is_file()]
    fault = f"and {folder} has no such file: add it, or remove the line"
    refuse(folder / LABELS_FILE, (missing, f" names {{}}, {fault}"))
    files = [read_file(folder / name) for name in names]
    kinds = sorted({label for graph in files for label in graph.labels} - {""})
    nodes = sum(len(graph.labels) for graph in files)
    many = f": {nodes} nodes have {len(kinds)} labels, which are too many"
    refuse(folder, (len(kinds) * nodes > data.MAX_FEATURES, many))
    number = {kind: k for k, kind in enumerate(kinds)}
    items = []
    for name, (labels, edges, _), y in zip(names, files, classes, strict=True):
        bare = [k for k, label in enumerate(labels) if kinds and not label]
        refuse(folder / name, (bare, ": node {} has no label, others have one"))
        x = torch.zeros(len(labels), len(kinds))
        if kinds:
            x[torch.arange(len(labels)), torch.tensor([number[k] for k in labels])] = 1
        items.append(Item(torch.tensor(edges, dtype=torch.long).view(-1, 2).T, x, y))
    wide = sorted({name for graph in files for name in graph.further})
    graphs, notes = with_classes(items)
    graphs = replace(graphs, labels=tuple(kinds))
    return graphs, notes | ({FURTHER: wide} if wide else {})


def folder_of_any(what: str, data_root: Path | None) -> tuple[Graphs, list[str] | None]:
    """Return the graphs of a folder and the names of their files, with or without classes."""
    folder = own.find_path(what, data_root, Path.is_dir)
    if any(folder.glob("*_graph_indicator.txt")):
        return both_ways(read_folder(what, data_root)[0])[0], None
    listed = (folder / LABELS_FILE).is_file()
    names = [file for file, _ in classes_in(folder, None)[0]] if listed else graph_files(folder)
    refuse(folder, (not names, f" has no {', '.join(GRAPH_FILES)} files: give a folder with some"))
    return both_ways(united_files(folder, names, [""] * len(names))[0])[0], names


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Leave out what torch says of its old compiler, which torch-geometric calls."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        yield


def function_data(what: str, data_root: Path | None) -> list[Any]:
    file, _, function = what.partition(":")
    path = own.find_path(file, data_root)
    with quiet_compiler(), users_code(f"run {what}"):
        known = vars(Sources().run(path))
        if not callable(known.get(function)):
            made = [name for name, value in known.items() if inspect.isfunction(value)]
            raise unknown(f"function in {path}", function, made)
        return list(known[function]())


def of_data(what: str, graphs: Iterable[Any], groups: str | None = None) -> ReadGraphs:
    """Graphs of PyG's `Data` with `edge_index`, `y`, perhaps `x` and a field of groups."""
    items, wide, named = [], set(), []
    for k, graph in enumerate(graphs):
        y = getattr(graph, "y", None)
        item = item_of(f"{what}: graph {k}", graph)
        given = [] if y is None else torch.as_tensor(y).flatten().tolist()
        if len(given) > 1:
            y = answers(f"{what}: graph {k}", given)
        elif given and float(given[0]).is_integer():
            y = int(given[0])
        else:
            fault = f" has y={y}: give each graph one class, a whole number"
            refuse(f"{what}: graph {k}", (True, fault))
        items.append(item._replace(y=y))
        if groups and groups not in graph.to_dict():
            raise unknown(f"field of {what}: graph {k}", groups, graph.to_dict())
        named += [str(np.asarray(graph[groups]).reshape(-1).tolist())] if groups else []
        wide |= {key for key, value in graph.to_dict().items() if torch.is_tensor(value)}
    refuse(what, (len(items) < 2, f": {len(items)} graphs: {TWO_GRAPHS_FIX}"))
    (made, notes), left = with_classes(items), sorted(wide - {*READ, groups})
    return replace(made, groups=tuple(named)), notes | ({FURTHER: left} if left else {})


def without_classes(what: str, graphs: Sequence[Any]) -> Graphs:
    """Graphs of torch-geometric's `Data` with `edge_index` and perhaps `x`."""
    refuse(what, (not graphs, " has no graphs: give a list of torch_geometric.data.Data"))
    items = [item_of(f"{what}: graph {k}", graph) for k, graph in enumerate(graphs)]
    return both_ways(stack_graphs(items, torch.zeros(len(items), dtype=torch.long)))[0]


def item_of(name: str, graph: Any) -> Item:
    edges: Any
    edges, x, nodes = (getattr(graph, key, None) for key in ("edge_index", "x", "num_nodes"))
    shaped = torch.is_tensor(edges) and nodes and edges.dim() == 2 and len(edges) == 2
    fault = " is no torch_geometric.data.Data with nodes and an edge_index"
    refuse(name, (not shaped, fault))
    assert nodes, "refused above"
    kind = edges.dtype
    counted = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    wrong = edges[(edges < 0) | (edges >= nodes)].tolist() if counted else ()
    x = torch.zeros(nodes, 0) if x is None else torch.as_tensor(x).detach()
    unlike = not x.dim() or len(x) != nodes or x.is_complex()
    sizes = f" has {nodes} nodes and x of {x.dtype} and shape {tuple(x.shape)}"
    refuse(
        name,
        (not counted, f" has an edge_index of {kind}: give whole numbers"),
        (wrong, f" has {nodes} nodes and an edge of node {{}}: correct it"),
        (unlike, f"{sizes}: give each node a row of numbers"),
    )
    x = x.reshape(nodes, -1).float()
    refuse(name, (not bool(x.isfinite().all()), " has node features that are not finite"))
    return Item(edges.long(), x, None)


def read_set(what: str, data_root: Path | None, groups: str | None = None) -> ReadGraphs:
    """Read a set of torch_geometric.datasets, CLASS or CLASS:NAME, which it fetches if need be."""
    with quiet_compiler():
        from torch_geometric import datasets
    kind, _, name = what.partition(":")
    check_known("set of torch_geometric.datasets", kind, datasets.__all__)
    place = (data_root or cache_folder()) / "torch_geometric" / kind
    class_ = getattr(datasets, kind)
    root = [str(place)] * ("root" in inspect.signature(class_).parameters)
    fix = "give pyg:CLASS:NAME, and a network for the first time"
    with reading(f"pyg:{what}", fix, "cannot be had"):
        found = class_(*root, *filter(None, [name]))
        return of_data(f"pyg:{what}", found, groups)


READERS: dict[str, Reader] = {
    "folder": read_folder,
    own.PYTHON: lambda what, root, groups: of_data(what, function_data(what, root), groups),
    "pyg": read_set,
    MOLECULES.kind: read_smiles,
}
ADAPTER: own.Adapter[LoadedGraphs] = own.Adapter(
    "graph",
    DATASETS,
    SOURCES,
    read_own,
    lambda name, data_root, _: (*data.load_graphs(name, data_root), {}),
    others=True,
)
