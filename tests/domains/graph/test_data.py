"""The TU format is read strictly: what is wrong is named, and nothing is ever dropped."""

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.io import read_tu_data

from contrastbench.domains.graph import DATASETS, data
from contrastbench.domains.graph.data import (
    Graphs,
    content_hash,
    load_graphs,
    open_raw,
    parse_tu,
    with_attributes,
)
from contrastbench.losses import UserError
from tu_files import TU, write


def read(root: Path) -> Graphs:
    return parse_tu(open_raw("TOY", root), None)


def test_three_graphs(tmp_path: Path) -> None:
    graphs = read(write(tmp_path))
    assert graphs.y.tolist() == [1, 0, 1]
    assert graphs.node_ptr.tolist() == [0, 3, 5, 8]
    assert graphs.edge_ptr.tolist() == [0, 4, 4, 10]
    assert graphs.x.argmax(dim=1).tolist() == [0, 2, 0, 0, 0, 2, 2, 1]
    assert graphs.edge_index[:, :4].tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize("layout", ["TOY", "TOY/raw", "tudataset/TOY", "."])
def test_every_layout_is_found(tmp_path: Path, layout: str) -> None:
    write(tmp_path / layout)
    assert len(read(tmp_path)) == 3


@pytest.mark.parametrize("inside", ["TOY/", ""])
def test_a_zip_is_read_in_place(tmp_path: Path, inside: str) -> None:
    folder = write(tmp_path / "files")
    with zipfile.ZipFile(tmp_path / "TOY.zip", "w", zipfile.ZIP_LZMA) as archive:
        for file in folder.iterdir():
            archive.write(file, inside + file.name)
    assert content_hash(read(tmp_path)) == content_hash(read(folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["TOY.zip", "files"]


ATTRIBUTES = "".join(f"{k}.5, {k % 3}, 7\n" for k in range(8))


def attributed(folder: Path, text: str | None) -> tuple[Graphs, str]:
    write(folder, node_attributes=text)
    data.load_graphs.cache_clear()
    return with_attributes(*load_graphs("TOY", folder), "TOY", data.open_raw("TOY", folder))


def test_attributes_stand_behind_the_labels_standardised(tmp_path: Path) -> None:
    plain, digest = read(write(tmp_path)), load_graphs("TOY", tmp_path)[1]
    graphs, both = attributed(tmp_path, ATTRIBUTES)
    width = plain.x.shape[1]
    assert graphs.x[:, :width].equal(plain.x)
    found = graphs.x[:, width:]
    assert found[:, :2].mean(0).abs().max() < 1e-6
    assert found[:, :2].std(0, correction=0) == pytest.approx([1.0, 1.0])
    assert (found[1:, 0] > found[:-1, 0]).all(), "each node has its own line"
    assert not found[:, 2].any(), "a constant column is zero"
    assert both != digest


def test_the_hash_of_attributes_is_of_what_the_file_says(tmp_path: Path) -> None:
    first = attributed(tmp_path, ATTRIBUTES)[1]
    assert attributed(tmp_path, ATTRIBUTES.replace(", ", ","))[1] == first
    assert attributed(tmp_path, ATTRIBUTES.replace("4.5", "4.50001"))[1] != first


def test_a_set_of_known_content_must_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = replace(
        DATASETS["PTC_FM"], sizes=(3, 8, 10), content=content_hash(read(write(tmp_path)))
    )
    monkeypatch.setitem(DATASETS, "PTC_FM", known)
    write(tmp_path, "PTC_FM")
    assert load_graphs("PTC_FM", tmp_path)[1] == known.content
    write(tmp_path, "PTC_FM", node_labels=TU["node_labels"].replace("2\n", "1\n", 1))
    data.load_graphs.cache_clear()
    with pytest.raises(UserError, match=r"the files of PTC_FM differ .* get http.*zip"):
        load_graphs("PTC_FM", tmp_path)


def test_empty_graphs_keep_their_rows(tmp_path: Path) -> None:
    labels = "".join(f"{label}\n" for label in (7, 1, -1, 8, 1))
    indicator = TU["graph_indicator"].replace("3", "5").replace("2", "3").replace("1", "2")
    graphs = read(write(tmp_path, graph_labels=labels, graph_indicator=indicator))
    assert graphs.node_ptr.diff().tolist() == [0, 3, 2, 0, 3]
    assert graphs.edge_ptr.diff().tolist() == [0, 4, 0, 0, 6]


EMBEDDED_CONTENT = {
    "label-pairs": "1e786beba9a2c4d737c298c4b7ef2ea4e860944b9d4f090ded4a3b10707ae74d",
    "motifs": "e5e73cd39b13100f71b33c5b7fac096a9cd36e25ac6528cd99f3c6efc38a6e78",
}


@pytest.mark.parametrize("name", EMBEDDED_CONTENT)
def test_an_embedded_set_is_the_same_everywhere(name: str) -> None:
    assert load_graphs(name)[1] == EMBEDDED_CONTENT[name]


@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "IMDB-BINARY"])
def test_equal_to_torch_geometrics_reading(
    name: str, shared: Callable[..., Path], tmp_path: Path
) -> None:
    archive = shared("data", "tudataset", f"{name}.zip")
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    theirs, slices, _ = read_tu_data(str(tmp_path / name), name)
    graphs, _ = load_graphs(name, archive.parent)
    assert torch.equal(graphs.edge_ptr, slices["edge_index"])
    shift = graphs.node_ptr[:-1].repeat_interleave(graphs.edge_ptr.diff())
    assert torch.equal(graphs.edge_index - shift, theirs.edge_index)
    assert torch.equal(graphs.y, theirs.y)
    if graphs.x.shape[1]:
        assert torch.equal(graphs.node_ptr, slices["x"])
        assert torch.equal(graphs.x, theirs.x[:, -graphs.x.shape[1] :])
