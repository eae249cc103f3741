"""Losses of other libraries, which `bench perf losses` measures beside ours."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

PEER_CLASSES, PEER_DIM = 100, 128  # of the embeddings that are measured
LIGHTLY, METRIC = "lightly.loss", "pytorch_metric_learning.losses"


@dataclass(frozen=True)
class Peer:
    """Another library's form of a loss.

    Args:
        module, name: its class.
        params: its arguments that make it our loss with default parameters.
        epsilon: that of the miner of multi-similarity, for the loss that has one.
    """

    module: str
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None

    @property
    def installed(self) -> bool:
        """Return whether the library is there."""
        return importlib.util.find_spec(self.module.partition(".")[0]) is not None

    def make(self) -> nn.Module:
        """Make the loss; that of metric learning is a mean over anchors."""
        module, params = importlib.import_module(self.module), dict(self.params)
        if self.module == METRIC and "num_classes" not in params:
            params["reducer"] = importlib.import_module(
                "pytorch_metric_learning.reducers"
            ).MeanReducer()
        loss: nn.Module = getattr(module, self.name)(**params)
        return loss

    def value(self, loss: nn.Module, views: list[Tensor], classes: Tensor) -> Tensor:
        """Return what the made loss says of two views of samples that have these classes."""
        if self.module == LIGHTLY:
            return torch.as_tensor(loss(*views))
        z, labels = torch.cat(views), classes.repeat(2)
        if self.epsilon is None:
            return torch.as_tensor(loss(z, labels))
        miners = importlib.import_module("pytorch_metric_learning.miners")
        pairs = miners.MultiSimilarityMiner(epsilon=self.epsilon)(z, labels)
        return torch.as_tensor(loss(z, labels, pairs))


PROXIES = {"num_classes": PEER_CLASSES, "embedding_size": PEER_DIM}
PEERS: Mapping[str, Peer] = {  # row of the table -> peer of the loss that it begins with
    "infonce of lightly": Peer(LIGHTLY, "NTXentLoss", {"temperature": 0.5}),
    "infonce of pytorch-metric-learning": Peer(METRIC, "NTXentLoss", {"temperature": 0.5}),
    "decoupled of lightly": Peer(LIGHTLY, "DCLLoss", {"temperature": 0.5}),
    "dcl_w of lightly": Peer(LIGHTLY, "DCLWLoss", {"temperature": 0.5, "sigma": 0.5}),
    "macl of lightly": Peer(LIGHTLY, "MACLLoss", {"temperature": 0.5, "alpha": 0.5, "A_0": 0.0}),
    "supcon of pytorch-metric-learning": Peer(METRIC, "SupConLoss", {"temperature": 0.5}),
    "circle of pytorch-metric-learning": Peer(METRIC, "CircleLoss", {"m": 0.4, "gamma": 80}),
    "multi_similarity of pytorch-metric-learning": Peer(
        METRIC, "MultiSimilarityLoss", {"alpha": 2, "beta": 50, "base": 0.5}, epsilon=0.1
    ),
    "triplet of pytorch-metric-learning": Peer(METRIC, "TripletMarginLoss", {"margin": 0.2}),
    "lifted of pytorch-metric-learning": Peer(
        METRIC, "GeneralizedLiftedStructureLoss", {"neg_margin": 1, "pos_margin": 0}
    ),
    "proxy_anchor of pytorch-metric-learning": Peer(
        METRIC, "ProxyAnchorLoss", {**PROXIES, "margin": 0.1, "alpha": 32}
    ),
    "cross_entropy of pytorch-metric-learning": Peer(
        METRIC, "NormalizedSoftmaxLoss", {**PROXIES, "temperature": 0.1}
    ),
}


def peers_of(loss: str) -> list[str]:
    """Return the rows of the loss's peers.

    >>> peers_of("supcon")
    ['supcon of pytorch-metric-learning']
    """
    return [row for row in PEERS if row.startswith(f"{loss} of ")]
