"""The encoder against torch-geometric's GINConv, and rows that match their graphs."""

import dataclasses
import itertools

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
from contrastbench.domains.graph.views import add_loops, augment
from contrastbench.domains.random import generator


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    motifs, _ = load_graphs("motifs")
    part = motifs[:12]
    x = torch.randn(len(part.x), 4, generator=torch.Generator().manual_seed(0))
    return add_loops(dataclasses.replace(part, x=x))


@pytest.mark.parametrize("symmetric", [True, False])
def test_layers_equal_torch_geometrics_ginconv(graphs: Graphs, symmetric: bool) -> None:
    if not symmetric:
        graphs = augment(
            graphs,
            GraphRecipe(augmentation="edges", edge_ratio=0.3),
            generator(torch.device("cpu"), 0),
        )
    torch.manual_seed(0)
    encoder = GIN(4).train()
    batch, x, pooled = graphs.graph_of_node, graphs.x, []
    for mlp, norm in zip(encoder.mlps, encoder.norms, strict=True):
        x = norm(nn.GINConv(mlp)(x, graphs.edge_index.flip(0)).relu())
        pooled.append(nn.global_add_pool(x, batch, size=len(graphs)))
    expected = torch.cat(pooled, dim=1)
    found = encoder(graphs, symmetric)
    assert torch.allclose(found, expected, atol=1e-4, rtol=1e-5)
    weight = torch.randn_like(expected)
    gradients = [
        torch.autograd.grad((y * weight).sum(), list(encoder.parameters()))
        for y in (found, expected)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-3 * float(theirs.abs().max()))


def test_untrained_it_counts_walks_where_nodes_begin_alike(graphs: Graphs) -> None:
    # biases start at zero, so layers are linear in what is positive: results/graph-degrees says so
    alike = dataclasses.replace(graphs, x=torch.ones(len(graphs.x), 1, dtype=torch.float64))
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
    doubled = dataclasses.replace(graphs, x=graphs.x.double())
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
