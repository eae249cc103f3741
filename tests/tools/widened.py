"""A loss whose graphs train in float64, where ranks and one process differ by rounding alone.

A file of its own, as a user's loss has. Its process ends where ENDING says so, see `ending`.
"""

import copy
from dataclasses import replace
from typing import Any

from torch import nn

from contrastbench.domains.graph.data import Graphs
from contrastbench.domains.graph.domain import GraphDomain
from ending import Ending

make, evaluate = GraphDomain.model, GraphDomain.evaluate


def model(domain: GraphDomain) -> nn.Module:
    """Make the model with weights, products and statistics of 64 bits."""
    wide = make(domain).double()
    wide.encoder.register_forward_pre_hook(widened)
    return wide


def widened(_: nn.Module, inputs: tuple[Graphs, *tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the inputs, whose first are graphs, with features of 64 bits."""
    graphs, *others = inputs
    return replace(graphs, x=graphs.x.double()), *others


def scored(domain: GraphDomain, wide: nn.Module) -> Any:
    """Score a copy with weights of 32 bits, as classifiers like it."""
    narrow = copy.deepcopy(wide).float()
    narrow.encoder._forward_pre_hooks.clear()
    return evaluate(domain, narrow)


GraphDomain.model, GraphDomain.evaluate = model, scored


class Widened(Ending):
    """InfoNCE whose graphs train in float64."""
