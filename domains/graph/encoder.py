"""GIN with sum-pooled layers concatenated, GraphCL's projection, and counts in its place."""

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from contrastbench.domains.graph.data import MAX_DEGREE, Graphs, occurrences, pointers
from contrastbench.domains.model import BatchNorm1d


class Neighbours:
    """The sparse adjacency of many graphs, and its transpose for the backward pass."""

    def __init__(self, graphs: Graphs, symmetric: bool) -> None:
        source, target = graphs.edge_index
        self.forward = csr(graphs.row_ptr, target, graphs.x)
        if symmetric:
            self.backward = self.forward
        else:
            degree = occurrences(target, len(graphs.x))
            columns = source[target.argsort(stable=True)]
            self.backward = csr(pointers(degree), columns, graphs.x)


def csr(row_ptr: Tensor, columns: Tensor, like: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        # torch 2.11 gives it although the checks are declined below
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly", UserWarning)
        values = like.new_ones(len(columns))
        return torch.sparse_csr_tensor(
            row_ptr, columns, values, (len(row_ptr) - 1,) * 2, check_invariants=False
        )


class NeighbourSum(torch.autograd.Function):
    """Sum over each node's neighbours as one sparse product, in both directions.

    Autograd's own rule for sparse products transposes the matrix anew in every layer; gathering and
    scattering edge by edge takes twice as long.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, neighbours: Neighbours) -> Tensor:
        ctx.neighbours = neighbours
        return neighbours.forward @ x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.neighbours.backward @ gradient, None


class GIN(nn.Module):
    """Graph isomorphism network (Xu et al. 2019, eq. 4.1, epsilon 0), or with edges' features.

    Those are GINE's (Hu et al. 2020), in columns `bonds`: a linear map of them, without a bias, is
    added to the neighbour, and what is above zero is summed. Loops have features of 0.

    Every layer's sum over a graph's nodes is part of its embedding. Each layer is MLP, ReLU, batch
    norm, in the order of GraphCL's code; weights start Xavier-uniform, biases at zero.
    """

    def __init__(self, features: int, hidden: int = 32, layers: int = 3, bonds: int = 0) -> None:
        super().__init__()
        self.features, self.edge_features = features, bonds
        widths = [features] + [hidden] * layers
        self.mlps = nn.ModuleList(mlp(a, b, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm1d(hidden) for _ in range(layers))
        inputs = widths[:-1] if bonds else []
        self.bonds = nn.ModuleList(nn.Linear(bonds, width, bias=False) for width in inputs)
        self.width = hidden * layers

    def forward(self, graphs: Graphs, symmetric: bool = True) -> Tensor:
        """(graphs, layers * hidden) embeddings; `symmetric`: all edges are there both ways."""
        return torch.cat([sum_pooled(x, graphs) for x in self.layers(graphs, symmetric)], dim=1)

    def layers(self, graphs: Graphs, symmetric: bool = True) -> Iterator[Tensor]:
        """(nodes, hidden) what each layer makes of the nodes."""
        x, neighbours = graphs.x, None if self.bonds else Neighbours(graphs, symmetric)
        for k, (layer, norm) in enumerate(zip(self.mlps, self.norms, strict=True)):
            if neighbours:
                around = NeighbourSum.apply(x, neighbours)
            else:
                messages = (
                    x[graphs.edge_index[1]] + self.bonds[k](graphs.edge_attr)
                ).relu()  # GINE's
                around = torch.segment_reduce(messages, "sum", offsets=graphs.row_ptr, axis=0)
            x = norm(layer(x + around).relu())
            yield x


def sum_pooled(x: Tensor, graphs: Graphs) -> Tensor:
    """(graphs, d) the sum over each graph's nodes."""
    return torch.segment_reduce(x, "sum", offsets=graphs.node_ptr, axis=0)


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    for layer in net:
        if isinstance(layer, nn.Linear):
            xavier_layer(layer)
    return net


def xavier_layer(layer: nn.Linear) -> nn.Linear:
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class GraphModel(nn.Module):
    """GIN and the projection that only training uses."""

    def __init__(self, encoder: GIN) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = mlp(self.encoder.width, self.encoder.width, self.encoder.width)

    def forward(self, graphs: Graphs, symmetric: bool = True) -> Tensor:
        projection: Tensor = self.projector(self.encoder(graphs, symmetric))
        return projection


class InfoGraphHead(nn.Module):
    """InfoGraph's head: three layers of one width, each with ReLU, and a linear layer beside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        third, self.beside = (xavier_layer(nn.Linear(width, width)) for _ in range(2))
        self.block = nn.Sequential(mlp(width, width, width), nn.ReLU(), third, nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        together: Tensor = self.block(x) + self.beside(x)
        return together


class InfoGraph(nn.Module):
    """GIN with a head for graphs and one for their nodes (Sun et al. 2020), of training alone."""

    def __init__(self, encoder: GIN) -> None:
        super().__init__()
        self.encoder = encoder
        self.of_graphs = InfoGraphHead(self.encoder.width)
        self.of_nodes = InfoGraphHead(self.encoder.width)

    def forward(self, graphs: Graphs) -> tuple[Tensor, Tensor]:
        """(graphs, d) and (nodes, d), which losses compare."""
        layers = list(self.encoder.layers(graphs))
        whole = torch.cat([sum_pooled(x, graphs) for x in layers], dim=1)
        return self.of_graphs(whole), self.of_nodes(torch.cat(layers, dim=1))


class Histograms(nn.Module):
    """Histograms of node degrees and labels of a graph, projected at random to a width.

    What a graph encoder must beat: it has no weights to train and sees no two nodes together. The
    projection is normal with variance 1 / width, so that lengths are kept on average (Johnson and
    Lindenstrauss).
    """

    projection: Tensor  # (degrees and features, width)

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        projection = torch.randn(MAX_DEGREE + 1 + features, width) / width**0.5
        self.register_buffer("projection", projection)

    def forward(self, graphs: Graphs) -> Tensor:
        """(graphs, width) embeddings; loops are no edges."""
        source, target = graphs.edge_index
        degree = occurrences(source[source != target], len(graphs.x)).clamp_max(MAX_DEGREE)
        nodes = torch.cat([one_hot(degree, MAX_DEGREE + 1).to(graphs.x.dtype), graphs.x], dim=1)
        counts = torch.segment_reduce(nodes, "sum", offsets=graphs.node_ptr, axis=0)
        return counts @ self.projection


class Sizes(nn.Module):
    """The logarithms of a graph's numbers of nodes and edges, the least an encoder sees."""

    def forward(self, graphs: Graphs) -> Tensor:
        """(graphs, 2) embeddings, log(1 + n); loops are no edges, and both ways are two."""
        source, target = graphs.edge_index
        edges = (source != target).to(graphs.x.dtype)
        edges = torch.segment_reduce(edges, "sum", offsets=graphs.edge_ptr)
        return torch.stack([graphs.node_ptr.diff(), edges], dim=1).log1p()


class Sums(nn.Module):
    """The sum over a graph's nodes; of a fingerprint, which is one node, itself."""

    def forward(self, graphs: Graphs) -> Tensor:
        """Return the embeddings (graphs, features)."""
        return sum_pooled(graphs.x, graphs)
