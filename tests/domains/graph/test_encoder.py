"""The encoder against torch-geometric's, rows that match their graphs, and features of edges."""

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch_geometric import nn

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.data import Graphs, load_graphs, union
from contrastbench.domains.graph.encoder import (
    GIN,
    GraphModel,
    Histograms,
    Sizes,
)
from contrastbench.domains.graph.exports import open_encoder
from contrastbench.domains.graph.twins import colours
from contrastbench.domains.graph.views import add_loops, augment
from contrastbench.domains.random import generator
from contrastbench.losses import UserError, get_loss
from opened import opened
from shadow import shadow
from tu_files import write

SHADOW, CPU = shadow(), torch.device("cpu")  # before any backward pass, which settles the devices


@pytest.fixture(scope="module")
def numbered() -> Graphs:
    """Motifs whose edges have the numbers of their ends as features, and random nodes."""
    motifs = load_graphs("motifs")[0][:12]
    x = torch.randn(len(motifs.x), 4, generator=torch.Generator().manual_seed(0))
    return replace(motifs, x=x, edge_attr=motifs.edge_index.T.float() / len(x))


@pytest.fixture(scope="module")
def graphs(numbered: Graphs) -> Graphs:
    return add_loops(replace(numbered, edge_attr=numbered.edge_attr[:, :0]))


@pytest.mark.parametrize("bonds", [0, 2])
@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_layers_equal_torch_geometrics(numbered: Graphs, ratio: float, bonds: int) -> None:
    """GINConv, and with features of edges GINEConv; views that lack edges are not symmetric."""
    recipe = GraphRecipe(augmentation="edges", edge_ratio=ratio)
    graphs = augment(add_loops(numbered), recipe, generator(CPU, 0)) if ratio else numbered
    torch.manual_seed(0)
    encoder = GIN(4, bonds=bonds).train()
    x, pooled = graphs.x, []
    for k, (mlp, norm) in enumerate(zip(encoder.mlps, encoder.norms, strict=True)):
        layer, attributes = nn.GINConv(mlp), ()
        if bonds:
            layer, attributes = nn.GINEConv(mlp, edge_dim=bonds), (graphs.edge_attr,)
            layer.lin.weight, layer.lin.bias = encoder.bonds[k].weight, None
        x = norm(layer(x, graphs.edge_index.flip(0), *attributes).relu())
        pooled.append(nn.global_add_pool(x, graphs.graph_of_node, size=len(graphs)))
    expected, found = torch.cat(pooled, dim=1), encoder(graphs, not ratio)
    assert torch.allclose(found, expected, atol=1e-4, rtol=1e-5)
    weight = torch.randn_like(expected)
    ours, theirs = (
        torch.autograd.grad((y * weight).sum(), [*encoder.parameters()]) for y in (found, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-3 * float(other.abs().max()))


def test_untrained_it_counts_walks_where_nodes_begin_alike(graphs: Graphs) -> None:
    # biases start at zero, so layers are linear in what is positive: results/graph-degrees says so
    alike = replace(graphs, x=torch.ones(len(graphs.x), 1, dtype=torch.float64))
    encoder = GIN(1).double().eval()
    steps = torch.eye(len(alike.x), dtype=torch.float64)
    steps.index_put_(tuple(alike.edge_index), torch.ones(()).double(), accumulate=True)
    walks, layers = torch.ones(len(alike.x)).double(), encoder(alike).split(32, dim=1)
    for layer in layers:
        walks = steps @ walks
        counted = torch.segment_reduce(walks, "sum", offsets=alike.node_ptr)
        by_walk = layer / counted[:, None]
        torch.testing.assert_close(by_walk, by_walk[:1].expand_as(by_walk))
        assert by_walk.abs().max() > 0


def test_empty_graphs_first_middle_and_last_get_rows_of_zeros(graphs: Graphs) -> None:
    gaps = torch.cat(
        [graphs.node_ptr[:1], graphs.node_ptr[:6], graphs.node_ptr[5:], graphs.node_ptr[-1:]]
    )
    holes = union(graphs.x, graphs.edge_index, gaps, torch.zeros(len(gaps) - 1, dtype=torch.long))
    plain = union(graphs.x, graphs.edge_index, graphs.node_ptr, graphs.y)
    encoder = GIN(4).eval()
    rows, expected = encoder(holes), encoder(plain)
    empty = gaps.diff() == 0
    assert empty.nonzero().flatten().tolist() == [0, 6, len(gaps) - 2]
    assert (rows[empty] == 0).all()
    assert torch.allclose(rows[~empty], expected)


def test_a_batch_is_its_graphs_one_by_one(graphs: Graphs) -> None:
    model = GraphModel(GIN(4, hidden=8, layers=2)).eval()
    alone = torch.cat([model(graphs[i : i + 1]) for i in range(len(graphs))])
    assert torch.allclose(model(graphs), alone, atol=1e-4)


def test_histograms_count_degrees_and_features_graph_by_graph(graphs: Graphs) -> None:
    encoder = Histograms(4, 8).double()
    rows = []
    for i in range(len(graphs)):
        one = graphs[i : i + 1]
        counts = torch.zeros(len(encoder.projection), dtype=torch.float64)
        for node in range(len(one.x)):
            edges = [(a, b) for a, b in one.edge_index.T.tolist() if a == node != b]
            counts[len(edges)] += 1
            counts[-4:] += one.x[node].double()
        rows.append(counts @ encoder.projection)
    doubled = replace(graphs, x=graphs.x.double())
    assert (graphs.edge_index[0] == graphs.edge_index[1]).any(), "there are loops to leave out"
    assert torch.allclose(encoder(doubled), torch.stack(rows), rtol=1e-12, atol=1e-12)


def test_sizes_count_nodes_and_edges_but_no_loops() -> None:
    sizes, edges = [2, 0, 1, 3], [[(0, 1), (1, 0)], [], [], [(3, 4), (4, 3), (4, 5), (5, 4)]]
    graphs = union(
        torch.ones(sum(sizes), 1),
        torch.tensor([edge for some in edges for edge in some]).T,
        torch.tensor([0, *itertools.accumulate(sizes)]),
        torch.zeros(len(sizes), dtype=torch.long),
    )
    counted = torch.tensor([[2, 2], [0, 0], [1, 0], [3, 4]]).log1p()
    for some in (graphs, add_loops(graphs)):
        torch.testing.assert_close(Sizes()(some), counted)  # logarithms round by the processor


def triangles(folder: Path, labels: str = "123", lines: int = 6) -> str:
    nodes = range(1, 61, 3)
    ends = [(a + i, a + j) for a in nodes for i, j in ((0, 1), (1, 2), (0, 2))]
    kinds = [int(labels[k % 3]) + 9 * (k // 30) for k in range(len(ends))]
    made = write(
        folder,
        "T",
        A="".join(f"{a}, {b}\n{b}, {a}\n" for a, b in ends),
        graph_indicator="".join(f"{k // 3 + 1}\n" for k in range(60)),
        graph_labels="".join(f"{k // 10}\n" for k in range(20)),
        node_labels=None,
        edge_labels="".join(f"{kind}\n{kind}\n" for kind in kinds[: lines * 10]),
    )
    return f"folder:{made}"


domain = partial(opened, "graph", folds=2)


@pytest.mark.parametrize("augmentation", ["drop", "edges", "mask", "subgraph"])
def test_an_edge_keeps_its_features(numbered: Graphs, augmentation: str) -> None:
    number = torch.arange(len(numbered.x)).float()[:, None].expand(-1, 2) / len(numbered.x)
    whole = add_loops(replace(numbered, x=torch.cat([numbered.x, number], dim=1)))
    proper = whole.edge_index[0] != whole.edge_index[1]
    assert proper.sum() == len(numbered.edge_attr)
    assert not whole.edge_attr[~proper].any()
    for graphs in (whole, whole.select(torch.tensor([7, 2])), whole[3:5], whole.split(4)[1]):
        seen = augment(
            graphs, GraphRecipe(augmentation=augmentation, mask_ratio=0), generator(CPU, 0)
        )
        assert len(seen.edge_attr) > 2
        assert torch.equal(seen.edge_attr.T, seen.x[seen.edge_index, -1])


def test_labels_of_edges_are_read_where_the_encoder_does(tmp_path: Path) -> None:
    name, other = triangles(tmp_path / "a"), triangles(tmp_path / "b", "121")
    plain, found = domain(name), domain(name, encoder="gine")
    assert plain.graphs.edge_attr.shape[1] == 0
    assert plain.data_hash(True) == domain(other).data_hash(True)
    assert found.data_hash(True) not in (
        plain.data_hash(True),
        domain(other, encoder="gine").sha256,
    )
    assert plain.report(True).notes["edge labels"].startswith("left out: --recipe encoder=gine")
    assert "edge labels" not in found.report(True).notes
    assert (len({*colours(plain.graphs, 2)}), len({*colours(found.graphs, 2)})) == (1, 2)
    kinds = found.graphs.edge_attr.unique(dim=0)
    assert (len(kinds), kinds.sum().item()) == (7, 6)  # six labels, and loops
    triangles(tmp_path / "a", lines=5)
    with pytest.raises(UserError, match=r"T_edge_labels\.txt .* 100 lines for 120 edges"):
        domain(name, encoder="gine")


def test_an_export_reads_edges_again(tmp_path: Path) -> None:
    name = triangles(tmp_path / "a")
    trained = domain(name, encoder="gine")
    model = trained.model()
    trained.export(model, tmp_path / "export")
    opened = open_encoder(str(tmp_path / "export"), None, CPU)
    rows = opened.embed(opened.read(name, None).data)
    expected = trained.embeddings(model).x
    assert torch.allclose(rows.sort(dim=0).values, expected.sort(dim=0).values, atol=1e-5)
    with pytest.raises(UserError, match=r"has 0 features for each edge, and .* trained on 12"):
        opened.embed(replace(trained.graphs, edge_attr=trained.graphs.edge_attr[:, :0]))


def test_a_step_ends_in_the_bits_of_the_cpu(tmp_path: Path) -> None:
    name, steps = triangles(tmp_path / "a"), []
    for device in (CPU, SHADOW):
        made = domain(name, device=device, encoder="gine")
        model = made.model()
        (contrast,) = made.contrasts(model, next(iter(made.batches(0))))
        get_loss("infonce")(contrast).backward()
        assert {weight.device.type for weight in model.parameters()} == {device.type}
        steps.append([weight.grad.cpu() for weight in model.parameters()])
    for ours, theirs in zip(*steps, strict=True):
        assert torch.equal(ours, theirs)
