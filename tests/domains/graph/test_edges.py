"""Features of edges: read from labels, kept by views, and summed as torch-geometric's GINEConv."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch_geometric import nn

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.data import Graphs, load_graphs
from contrastbench.domains.graph.encoder import GIN
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


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_layers_equal_torch_geometrics_gineconv(numbered: Graphs, ratio: float) -> None:
    recipe = GraphRecipe(augmentation="edges", edge_ratio=ratio)
    graphs = augment(add_loops(numbered), recipe, generator(CPU, 0)) if ratio else numbered
    torch.manual_seed(0)
    encoder = GIN(4, layers=2, bonds=2)
    x, pooled = graphs.x, []
    for mlp, norm, bonds in zip(encoder.mlps, encoder.norms, encoder.bonds, strict=True):
        layer = nn.GINEConv(mlp, edge_dim=2)
        layer.lin.weight, layer.lin.bias = bonds.weight, None
        x = norm(layer(x, graphs.edge_index.flip(0), graphs.edge_attr).relu())
        pooled.append(nn.global_add_pool(x, graphs.graph_of_node, size=len(graphs)))
    expected, found = torch.cat(pooled, dim=1), encoder(graphs)
    assert torch.allclose(found, expected, atol=1e-4, rtol=1e-5)
    weight = torch.randn_like(expected)
    ours, theirs = (
        torch.autograd.grad((y * weight).sum(), [*encoder.parameters()]) for y in (found, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-3 * float(other.abs().max()))


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
