"""Augmented views of many graphs at once, by tensor operations on their disjoint union.

The operations are GraphCL's (You et al. 2020, section 3.1) as its unsupervised_TU code does them.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.data import Graphs, pointers, segment_items, segments

# randomN draws among the first N, graph by graph
AUGMENTATIONS = ("drop", "subgraph", "edges", "mask")


def augment(graphs: Graphs, recipe: GraphRecipe, generator: torch.Generator) -> Graphs:
    """One augmented view of every graph.

    As released: edges include the self-loops of the un-augmented graph, the view has none; a node
    that lost all its edges, loop included, leaves the view; a graph that had no edges keeps its
    nodes. With edges or mask alone the released code keeps loops and nodes; not so here.
    """
    operation = draw_operation(len(graphs), recipe.augmentation, generator)
    ptr, nodes = graphs.node_ptr, graphs.node_ptr.diff()
    keep_node = ~sample_mask(ptr, share(nodes, recipe.drop_ratio, operation == 0), generator)
    chosen = operation == 1
    if chosen.any():
        inside = one_hop(graphs, chosen, share(nodes, recipe.subgraph_ratio, chosen), generator)
        keep_node &= inside | ~chosen[graphs.graph_of_node]
    lost = share(graphs.edge_ptr.diff(), recipe.edge_ratio, operation == 2)
    keep_edge = ~sample_mask(graphs.edge_ptr, lost, generator)
    masked = sample_mask(ptr, share(nodes, recipe.mask_ratio, operation == 3), generator)
    return restrict(mask_features(graphs, masked, generator), keep_node, keep_edge)


def draw_operation(graphs: int, augmentation: str, generator: torch.Generator) -> Tensor:
    device = generator.device
    if augmentation in AUGMENTATIONS:
        return torch.full((graphs,), AUGMENTATIONS.index(augmentation), device=device)
    among = int(augmentation.removeprefix("random"))
    return torch.randint(among, (graphs,), generator=generator, device=device)


def share(sizes: Tensor, ratio: float, chosen: Tensor) -> Tensor:
    """Return how many items of each chosen graph: the ratio, rounded down; none of the others."""
    return (sizes.double() * ratio).long() * chosen


def sample_mask(ptr: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """Mask of `count` items of each segment: the lowest ranks of one random order."""
    mask = torch.zeros(int(ptr[-1]), dtype=torch.bool, device=ptr.device)
    busy = count.nonzero().squeeze(1)
    items, item_ptr = segment_items(ptr, busy)
    segment = segments(item_ptr)
    draw = torch.randint(2**32, segment.shape, generator=generator, device=ptr.device)
    # sorts inside each segment: integers sort six times faster than floats
    order = (segment * 2**32 + draw).argsort()
    rank = torch.arange(len(segment), device=ptr.device) - item_ptr[:-1][segment]
    mask[items[order[rank < count[busy][segment]]]] = True
    return mask


def one_hop(graphs: Graphs, chosen: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """Mask of a random node of each chosen graph and up to `count` of its neighbours.

    The released code means to grow further but drops the result of its set union. It also gives up
    after as many draws as the graph has nodes, which happens to about one small graph in fifty and
    is not imitated.
    """
    inside = torch.zeros(len(graphs.x), dtype=torch.bool, device=chosen.device)
    graph = (chosen & (graphs.node_ptr.diff() > 0)).nonzero().squeeze(1)
    draw = torch.rand(len(graph), generator=generator, device=chosen.device, dtype=torch.float64)
    start = graphs.node_ptr[graph] + (draw * graphs.node_ptr.diff()[graph]).long()
    edges, edge_ptr = segment_items(graphs.row_ptr, start)
    centre = start.repeat_interleave(edge_ptr.diff())
    neighbour = graphs.edge_index[1, edges]
    real = neighbour != centre
    one_each = torch.ones_like(neighbour[real])
    degree = torch.zeros_like(start).index_add(0, segments(edge_ptr)[real], one_each)
    inside[start] = True
    inside[neighbour[real][sample_mask(pointers(degree), count[graph], generator)]] = True
    return inside


def mask_features(graphs: Graphs, masked: Tensor, generator: torch.Generator) -> Graphs:
    """The features of the masked nodes replaced by noise, N(0.5, 0.5)."""
    x = graphs.x
    if masked.any():
        noise = torch.randn((int(masked.sum()), x.shape[1]), generator=generator, device=x.device)
        x = x.clone()
        x[masked] = 0.5 + 0.5 * noise
    return replace(graphs, x=x)


def restrict(graphs: Graphs, keep_node: Tensor, keep_edge: Tensor) -> Graphs:
    """The kept nodes that still have an edge or loop, and their kept edges without loops."""
    source, target = graphs.edge_index
    edge = (keep_edge & keep_node[source] & keep_node[target]).nonzero().squeeze(1)
    source, target = source[edge], target[edge]
    linked = (graphs.edge_ptr.diff() == 0)[graphs.graph_of_node]
    linked.index_fill_(0, source, True).index_fill_(0, target, True)
    keep_node = keep_node & linked
    proper = (source != target).nonzero().squeeze(1)
    node_at = pointers(keep_node)
    edges = node_at[torch.stack([source[proper], target[proper]])]
    edge_ptr = torch.searchsorted(edge[proper], graphs.edge_ptr)
    attr = graphs.edge_attr[edge[proper]]
    return Graphs(graphs.x[keep_node], edges, node_at[graphs.node_ptr], edge_ptr, graphs.y, attr)


def add_loops(graphs: Graphs) -> Graphs:
    """The released code's self-loops: of every node in a graph with edges but the last.

    The last is the one with the highest number among those with edges. Loops take part in the
    un-augmented view, in evaluation and in the counts of the augmentations. Their features are 0.
    """
    source, target = graphs.edge_index
    last_edge = graphs.edge_ptr[1:].clamp_min(1) - 1
    last_source = torch.cat([source, source.new_zeros(1)])[last_edge]
    highest = torch.where(graphs.edge_ptr.diff() > 0, last_source, -1)
    node = torch.arange(len(graphs.x), device=source.device)
    loops = node[node < highest[graphs.graph_of_node]]
    n = max(1, len(graphs.x))
    key, order = torch.cat([source * n + target, loops * n + loops]).sort()
    edges = torch.stack([key // n, key % n])
    edge_ptr = torch.searchsorted(edges[0].contiguous(), graphs.node_ptr)
    attr = pad(graphs.edge_attr, (0, 0, 0, len(loops)))[order]
    return replace(graphs, edge_index=edges, edge_ptr=edge_ptr, edge_attr=attr)
