"""Views, graph by graph: node numbers ride along as features and tell which nodes were kept."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
import torch

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.data import Graphs, load_graphs, union
from contrastbench.domains.graph.views import (
    AUGMENTATIONS,
    add_loops,
    augment,
    draw_operation,
    sample_mask,
)
from contrastbench.domains.random import generator

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Some motif graphs with loops, an edgeless and an empty one; features: node numbers."""
    motifs, _ = load_graphs("motifs")
    part = motifs[:40]
    nodes = torch.cat([part.node_ptr[:20], part.node_ptr[20:] + 3, part.node_ptr[-1:] + 3])
    edges = part.edge_index + 3 * (part.edge_index >= part.node_ptr[20])
    y = torch.cat([part.y[:20], part.y[:1], part.y[20:], part.y[:1]])[: len(nodes) - 1]
    ptr = torch.cat([nodes[:20], part.node_ptr[20:21], nodes[20:]])
    x = torch.arange(int(ptr[-1])).float().unsqueeze(1)
    return add_loops(union(x, edges, ptr, torch.zeros(len(ptr) - 1, dtype=torch.long) + len(y)))


def one_by_one(graphs: Graphs) -> list[tuple[list[int], set[tuple[int, int]]]]:
    """Each graph's original node numbers, and its edges between them."""
    result = []
    for i in range(len(graphs)):
        one = graphs[i : i + 1]
        numbers = one.x[:, 0].long().tolist()
        result.append((numbers, {(numbers[a], numbers[b]) for a, b in one.edge_index.T.tolist()}))
    return result


def view(graphs: Graphs, seed: int = 0, **recipe: object) -> Graphs:
    return augment(graphs, GraphRecipe(**recipe), generator(CPU, seed))


def linked(
    nodes: set[int], edges: set[tuple[int, int]], all_edges: set[tuple[int, int]]
) -> set[int]:
    """The nodes that keep an edge or a loop; all of a graph that never had one."""
    return {n for n in nodes if any(n in edge for edge in edges)} if all_edges else nodes


def test_the_fixture_has_an_edgeless_and_an_empty_graph(graphs: Graphs) -> None:
    sizes = [(len(nodes), len(edges)) for nodes, edges in one_by_one(graphs)]
    assert (3, 0) in sizes
    assert (0, 0) in sizes


def test_every_node_but_the_highest_linked_one_gets_a_loop(graphs: Graphs) -> None:
    for _, edges in one_by_one(graphs):
        ends = {a for a, b in edges if a != b}
        assert {a for a, b in edges if a == b} == ends - {max(ends, default=0)}


@pytest.mark.parametrize("augmentation", ["drop", "subgraph", "edges"])
def test_views_are_induced_subgraphs_without_loops(graphs: Graphs, augmentation: str) -> None:
    for (nodes, edges), (kept, left) in zip(
        one_by_one(graphs), one_by_one(view(graphs, augmentation=augmentation)), strict=True
    ):
        assert set(kept) <= set(nodes)
        assert kept == sorted(kept)
        induced = {(a, b) for a, b in edges if a in kept and b in kept and a != b}
        assert left <= induced if augmentation == "edges" else left == induced


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.3])
def test_drop_takes_its_share_of_nodes(graphs: Graphs, ratio: float) -> None:
    dropped = view(graphs, augmentation="drop", drop_ratio=ratio)
    for (nodes, edges), (kept, _) in zip(one_by_one(graphs), one_by_one(dropped), strict=True):
        lonely = 0 if len(kept) == len(nodes) - int(len(nodes) * ratio) else 1
        assert len(kept) + lonely == len(nodes) - int(len(nodes) * ratio)
        if lonely:  # only the node without a loop can leave for want of edges
            ends = {a for a, b in edges if a != b}
            assert max(ends) not in kept


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5])
def test_edges_loses_its_share_of_edges(graphs: Graphs, ratio: float) -> None:
    recipe = GraphRecipe(augmentation="edges", edge_ratio=ratio)
    with_loops = augment(graphs, recipe, generator(CPU, 1))
    for (nodes, edges), (kept, left) in zip(
        one_by_one(graphs), one_by_one(with_loops), strict=True
    ):
        loops = {(a, b) for a, b in edges if a == b}
        lost = int(len(edges) * ratio)
        assert len(edges) - lost - len(loops) <= len(left) <= len(edges) - len(loops)
        assert ratio or (kept, len(left)) == (nodes, len(edges) - len(loops))


@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.5])
def test_the_official_subgraph_is_a_node_and_some_neighbours(graphs: Graphs, ratio: float) -> None:
    part = view(graphs, augmentation="subgraph", subgraph_ratio=ratio)
    for (nodes, edges), (kept, _) in zip(one_by_one(graphs), one_by_one(part), strict=True):
        neighbours = {n: {b for a, b in edges if a == n and b != n} for n in nodes}
        size = int(len(nodes) * ratio)
        assert (
            any(
                set(kept)
                == linked(
                    {c} | set(kept), {(a, b) for a, b in edges if a in kept and b in kept}, edges
                )
                and set(kept) <= {c} | neighbours[c]
                and len(set(kept) | {c}) == 1 + min(size, len(neighbours[c]))
                for c in nodes
            )
            or not nodes
        )


def test_masks_replace_their_share_of_features_by_noise(graphs: Graphs) -> None:
    wide = replace(graphs, x=torch.full((len(graphs.x), 50), 9.0))
    masked = view(wide, augmentation="mask", mask_ratio=0.3)
    changed = (masked.x != 9).all(dim=1)
    assert torch.equal((masked.x != 9).any(dim=1), changed)
    for i in range(len(wide)):
        nodes = slice(int(wide.node_ptr[i]), int(wide.node_ptr[i + 1]))
        assert int(changed[nodes].sum()) == int((nodes.stop - nodes.start) * 0.3)
    assert masked.x[changed].mean().item() == pytest.approx(0.5, abs=0.02)
    assert masked.x[changed].std().item() == pytest.approx(0.5, abs=0.02)
    assert (wide.x == 9).all(), "the un-augmented graphs are left alone"


def test_samples_are_without_replacement_and_uniform() -> None:
    ptr, draws = torch.tensor([0, 5, 5, 9]), Counter()
    for seed in range(1000):
        mask = sample_mask(ptr, torch.tensor([2, 0, 1]), generator(CPU, seed))
        assert int(mask[5:].sum()) == 1
        draws[tuple(mask[:5].nonzero().flatten().tolist())] += 1
    assert set(draws) == set(combinations(range(5), 2))
    assert all(abs(count - 100) < 5 * (1000 * 0.1 * 0.9) ** 0.5 for count in draws.values())


@pytest.mark.parametrize(
    ("augmentation", "kinds"), [("random2", 2), ("random3", 3), ("random4", 4), ("mask", 1)]
)
def test_each_graph_draws_its_operation(augmentation: str, kinds: int) -> None:
    counts = draw_operation(8000, augmentation, generator(CPU, 5)).bincount(minlength=4)
    assert (counts > 0).sum() == kinds
    assert all(abs(count - 8000 / kinds) < 5 * 45 for count in counts[counts > 0].tolist())


@pytest.mark.parametrize("augmentation", ["random2", "random4", "subgraph"])
def test_the_generator_alone_decides(graphs: Graphs, augmentation: str) -> None:
    first, same, other = (view(graphs, seed, augmentation=augmentation) for seed in (3, 3, 4))
    assert torch.equal(first.edge_index, same.edge_index)
    assert torch.equal(first.x, same.x)
    assert first.x.shape != other.x.shape or not torch.equal(first.x, other.x)


def test_a_set_without_any_edge_keeps_its_nodes() -> None:
    bare = union(
        torch.ones(5, 1),
        torch.zeros(2, 0, dtype=torch.long),
        torch.tensor([0, 2, 5]),
        torch.tensor([0, 1]),
    )
    for augmentation in AUGMENTATIONS:
        seen = view(add_loops(bare), augmentation=augmentation)
        assert seen.node_ptr.diff().tolist() == ([1, 1] if augmentation == "subgraph" else [2, 3])
