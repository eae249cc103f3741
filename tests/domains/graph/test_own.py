"""Graphs that users bring: folders, torch-geometric's sets, functions of their own."""

import os
import py_compile
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch_geometric import datasets
from torch_geometric.data import Data

from contrastbench.domains.graph import own
from contrastbench.domains.graph.data import load_graphs
from contrastbench.domains.graph.domain import NOTES, few_codes, with_features
from contrastbench.domains.graph.files import node_pairs
from contrastbench.domains.report import found_by
from contrastbench.losses import UserError
from opened import opened
from tu_files import write

GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="k" for="node" attr.name="label" attr.type="int"/>
<graph edgedefault="undirected">{}</graph></graphml>"""


def graphml(path: Path, labels: str, edges: list[tuple[int, int]]) -> None:
    nodes = [f'<node id="{k}"><data key="k">{v}</data></node>' for k, v in enumerate(labels)]
    lines = [f'<edge source="{a}" target="{b}"/>' for a, b in edges]
    path.write_text(GRAPHML.format("".join(nodes + lines)))


def test_a_folder_of_tu_files_is_the_set(tmp_path: Path) -> None:
    write(tmp_path / "TOY")
    expected = load_graphs("TOY", tmp_path)
    graphs, digest, notes = own.load_own_graphs("folder:TOY", tmp_path)
    assert (digest, notes, len(graphs)) == (expected[1], {}, 3)
    for path in (tmp_path / "TOY").iterdir():  # as a spreadsheet of an old Mac writes them
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r"))
    assert own.load_own_graphs("folder:TOY", tmp_path)[1] == digest


def test_graphml_files_are_the_same_graphs(tmp_path: Path) -> None:
    expected = own.load_own_graphs(f"folder:{write(tmp_path / 'TOY')}", None)[1]
    folder = tmp_path / "files"
    folder.mkdir()
    graphml(folder / "a.graphml", "020", [(0, 1), (1, 2)])
    graphml(folder / "b.graphml", "00", [])
    graphml(folder / "c.graphml", "221", [(0, 1), (1, 2), (0, 2)])
    (folder / "labels.csv").write_text("file,class\na.graphml,yes\nb.graphml,no\nc.graphml,yes\n")
    _, digest, notes = own.load_own_graphs(f"folder:{folder}", None)
    assert digest == expected
    assert notes == {"edges added in the other direction": 5}, "files have each edge once"


def test_a_function_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start = "import sys\nimport torch\nfrom torch_geometric.data import Data\ndef graphs():\n"
    parts = "x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([k % 2])"

    def written(body: str) -> str:
        Path("mine.py").write_text(start + f"    {body}\n")
        return "mine.py:graphs"

    name = written(f"return [Data({parts}) for k in range(4)]")
    graphs, digest, notes = own.load_own_graphs(name, None)
    assert graphs.y.tolist() == [0, 1, 0, 1]
    assert graphs.edge_index[:, :4].tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert notes == {"edges added in the other direction": 8}
    assert own.load_own_graphs(name, None)[1] == digest


def test_a_line_of_torch_on_its_compiler_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(
        "import warnings\n\ndef graphs():\n"
        "    warnings.warn('`torch.jit.script` is deprecated.', FutureWarning)\n"
        "    warnings.warn('the edges', FutureWarning)\n    return []\n"
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert own.function_data("toy.py:graphs", tmp_path) == []
    assert [str(one.message) for one in shown] == ["the edges"], "others are shown"


def test_a_function_is_run_anew_with_the_modules_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes and times of edited code may be as before, and old bytecode may lie beside it."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import torch\nfrom helper import COUNT\nfrom torch_geometric.data import Data\n"
        "def graphs():\n    edges = torch.tensor([[0], [1]])\n"
        "    return [Data(x=torch.eye(3), edge_index=edges, y=k % 2) for k in range(COUNT)]\n"
    )
    helper = Path("helper.py")
    for count in (4, 6):
        helper.write_text(f"COUNT = {count}\n")
        os.utime(helper, ns=(10**18, 10**18))
        assert len(own.load_own_graphs("mine.py:graphs", None)[0]) == count
        py_compile.compile("helper.py", doraise=True)
    assert "helper" not in sys.modules


def test_a_set_that_nobody_counted_says_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the screen and in the record: a part of a set is otherwise a set as well."""
    write(tmp_path / "TOY")
    for name in ("scoring.svm.check_folds", "graph.domain.draw_folds"):
        monkeypatch.setattr(f"contrastbench.domains.{name}", lambda *_, **__: [])
    for name in ("folder:TOY", "TOY"):
        made = opened("graph", name, tmp_path, limit=2, folds=2)
        told = made.report(trained=True).lines(name)[0]
        assert told == f"{name}: 2 graphs; 2 classes (-1 1, 1 1); nodes: 5, edges: 4"
        counts = {"graphs": 3, "nodes": 8, "edges": 10, "classes": 2}
        assert made.notes(trained=True) == {"data": counts}


@pytest.mark.parametrize(
    ("text", "pairs", "further"),
    [
        ("source,target\nv0,v1\nv1,v2\n", ["v0 v1", "v1 v2"], False),
        ("from to\n0 1\n", ["0 1"], False),
        ("a,b\nv0,v1\n", ["a b", "v0 v1"], False),  # an edge by itself
        ("source,target\nsource,v1\n", ["source target", "source v1"], False),
        ("1\t2\n2\t3\n", ["1 2", "2 3"], False),
        ("1, 2\r\n 2 ,3\r\n", ["1 2", "2 3"], False),
        ("1 2 {'a': 1, 'b': 2}\n", ["1 2"], True),  # as networkx writes it
        ('"source";"target"\n"0";"1"\n', ["0 1"], False),
        ("0 1 1\n1 0 1\n", ["0 1", "1 0"], True),  # no lists of neighbours
        ("0 1 5\n1 0 6\n2 7 8\n3 9 4\n", ["0 1", "1 0", "2 7", "3 9"], True),  # nor these
        ("a.org 1 2\nb 1 3\n", ["a.org 1", "b 1"], True),  # a name may have a point, as no weight
        ("% sym unweighted\n1 2 0.5 1300000000\n", ["1 2"], True),  # as KONECT writes it
    ],
)
def test_the_nodes_of_an_edge_are_told_from_all_else(
    text: str, pairs: list[str], further: bool
) -> None:
    found, names = node_pairs(text)
    assert (found, bool(names)) == ([tuple(pair.split()) for pair in pairs], further)


@pytest.mark.parametrize(
    "header",
    ["weight,Src_ID,w2,dst_id", "type,node_from,x,node_to", "k,head,l,tail", "w,Node1,z,Node2"],
)
def test_the_columns_of_nodes_are_found_by_name(header: str) -> None:
    names = header.split(",")[::2]
    assert node_pairs(f"{header}\n5,0,9,1\n6,1,9,2\n") == ([("0", "1"), ("1", "2")], names)


def edge_lists(folder: Path, *texts: str, classes: str = "xy") -> str:
    folder.mkdir()
    (folder / "labels.csv").write_text(
        "".join(f"{k}.csv,{y}\n" for k, y in zip(range(len(texts)), classes, strict=True))
    )
    for k, text in enumerate(texts):
        (folder / f"{k}.csv").write_text(text)
    return f"folder:{folder}"


def test_loops_and_files_without_a_class_are_counted(tmp_path: Path) -> None:
    name = edge_lists(tmp_path / "g", "0,1\n", "0,0\n")
    (tmp_path / "g" / "2.csv").write_text("0,1\n")
    graphs, _, notes = own.load_own_graphs(name, None)
    assert (len(graphs), notes["loops and repeated edges, left out"]) == (2, 1)
    assert notes["graph files that labels.csv does not name"].first == "2.csv"


def test_edge_attributes_are_named() -> None:
    loop = torch.tensor([[0], [1]])
    graphs = [Data(edge_index=loop, y=k, num_nodes=2) for k in range(2)]
    graphs[1].edge_attr = torch.ones(1, 3)
    assert own.of_data("mine.py:make", graphs)[1] == {own.FURTHER: ["edge_attr"]}


def test_a_set_of_torch_geometric_is_read_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, asks = torch.tensor([[0], [1]]), []

    def made(root: str, name: str) -> list[object]:
        asks.append((root, name))
        if name != "TOY":
            raise ConnectionError("no route")
        return [Data(edge_index=loop, y=torch.tensor([k]), num_nodes=2) for k in range(2)]

    monkeypatch.setattr(datasets, "TUDataset", made)
    graphs, digest, notes = own.load_own_graphs("pyg:TUDataset:TOY", tmp_path)
    assert (graphs.y.tolist(), asks[0]) == (
        [0, 1],
        (str(tmp_path / "torch_geometric/TUDataset"), "TOY"),
    )
    assert (len(digest), notes) == (64, {"edges added in the other direction": 2})
    with pytest.raises(UserError, match=r"pyg:TUDataset:NO cannot be had \(no route\): give pyg:"):
        own.load_own_graphs("pyg:TUDataset:NO", tmp_path)
    with pytest.raises(UserError, match=r"unknown set of torch_geometric\.datasets 'TUDatase'"):
        own.load_own_graphs("pyg:TUDatase", tmp_path)


@pytest.mark.parametrize(
    ("header", "text", "named"),
    [
        ("file.name,class", "source,target,w\n0,1,0\n1,2,0\n", "w (0 of some edges)"),
        (",class", "0 1 2\n1 2 3\n", "column 3"),  # as pandas heads an index
        ("file/name,class", "0 1 2\n1 2 3\n", "column 3"),
    ],
)
def test_what_is_not_read_of_files_is_named(
    header: str, text: str, named: str, tmp_path: Path
) -> None:
    for k in range(4):
        (tmp_path / f"{k}.csv").write_text(text)
    rows = [f"{k}.csv,{k % 2}" for k in range(4)]
    (tmp_path / "labels.csv").write_text("\n".join([header, *rows]))
    graphs, _, notes = own.load_own_graphs(f"folder:{tmp_path}", None)
    assert (len(graphs), notes[own.FURTHER]) == (4, [named])


def test_what_is_not_read_of_graphs_is_named() -> None:
    ring, x = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([[6.0], [7.0], [6.0]])
    made = [Data(x=x, edge_index=ring, y=k % 2, pos=torch.ones(3, 2), z=x[:, 0]) for k in range(4)]
    graphs, notes = own.of_data("mine", made)
    assert notes[own.FURTHER] == ["pos", "z"]
    assert sum(found_by(NOTES, graphs).values()) == 12, "a code of each node"
    assert with_features(graphs, "codes").x.tolist() == [[1, 0], [0, 1], [1, 0]] * 4
    graphs.x[0] = 0.5
    assert (found_by(NOTES, graphs), few_codes(graphs.x)) == ({}, False)
