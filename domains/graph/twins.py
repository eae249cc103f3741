"""Graphs that no encoder of the recipe's depth can tell apart, by Weisfeiler and Lehman's test."""

import torch
from torch import Tensor

from contrastbench.domains.graph.data import Graphs

FACTORS = (-0x61C8864680B583EB, -0x4B47D0C5E5A5C5B5)  # odd: multiplying by them loses nothing


def colours(graphs: Graphs, depth: int) -> list[int]:
    """Return a number for each graph, the same where nodes' features agree to the depth.

    A node's colour is a hash of its own and of the multiset of its neighbours', with their edges',
    as each layer of a GIN sees them; a graph's is that of its nodes' multiset. Loops are no edges.
    """
    proper = graphs.edge_index[0] != graphs.edge_index[1]
    nodes, (source, target) = row_colours(graphs.x), graphs.edge_index[:, proper]
    bonds = row_colours(graphs.edge_attr[proper])
    for _ in range(depth):
        seen = mixed(nodes[target] + bonds)
        around = torch.zeros_like(nodes).scatter_add_(0, source, seen)
        nodes = mixed(mixed(nodes) + around)
    whole = nodes.new_zeros(len(graphs)).scatter_add_(0, graphs.graph_of_node, nodes)
    numbers: list[int] = whole.tolist()
    return numbers


def row_colours(rows: Tensor) -> Tensor:
    """Return a hash of each row of float32; 0 where there are no columns."""
    bits = rows.contiguous().view(torch.int32).long()
    numbers = bits.new_zeros(len(bits))
    for column in bits.T:
        numbers = mixed(numbers + column)
    return numbers


def mixed(numbers: Tensor) -> Tensor:
    for factor in FACTORS:
        numbers = (numbers + 1) * factor
        numbers = numbers ^ (numbers >> 29)
    return numbers
