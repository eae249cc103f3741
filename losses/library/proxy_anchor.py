"""Proxy Anchor, with a learned proxy of each class."""

from types import MappingProxyType

import torch
from torch import Tensor, nn

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, unit, unless
from contrastbench.losses.ranges import SCORE, Number, declare

NO_CLASSES = (
    "proxy_anchor has a proxy for each class, and the ids of this contrast are no classes from 0: "
    "pair by same_class, after prepare(classes, dim)"
)


class ProxyAnchor(Loss):
    r"""Proxy Anchor: each class's proxy is an anchor for all embeddings of a batch.

    .. math:: \frac{1}{\lvert P^+ \rvert} \sum_{p \in P^+} \log\Bigl(1 + \sum_{z \in Z_p}
       e^{-\alpha (s(z, p) - \delta)}\Bigr) + \frac{1}{\lvert P \rvert} \sum_{p \in P}
       \log\Bigl(1 + \sum_{z \notin Z_p} e^{\alpha (s(z, p) + \delta)}\Bigr)

    Kim et al., "Proxy Anchor Loss for Deep Metric Learning", CVPR 2020, equation 4,
    https://arxiv.org/abs/2003.13911: P are the proxies, P+ those of classes that the batch has, Z_p
    its embeddings of p's class, s the cosine. Proxies are learned with the embeddings, at a rate of
    their own, and drawn as the authors' code does. The positives and keys of the contrast are not
    looked at.

    Args:
        alpha: > 0, the scale.
        margin: delta.
        lr: > 0, the learning rate of the proxies; the paper's.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, same_class
    >>> loss = get_loss("proxy_anchor", alpha=1.0)
    >>> loss.prepare(classes=2, dim=4)
    >>> _ = loss.proxies.data.copy_(torch.eye(2, 4))
    >>> loss(same_class(torch.eye(2, 4), torch.eye(2, 4), torch.tensor([0, 1])))
    tensor(1.7614, grad_fn=<AddBackward0>)
    """

    needs_classes = True
    declined_laws = MappingProxyType(
        {"repeated anchors": "equation 4 sums over the embeddings of a class inside its logarithm"}
    )
    ranges = declare(
        alpha=Number(low=0, tune=(8, 64), log=True),
        margin=SCORE,
        lr=Number(low=0, tune=(1e-3, 1e-1), log=True),
    )

    alpha: float = 32.0
    margin: float = 0.1
    lr: float = 0.01

    def _set_up(self) -> None:
        self.proxies = nn.Parameter(torch.empty(0, 0))

    def prepare(self, classes: int, dim: int) -> None:
        self.proxies = nn.Parameter(torch.empty(classes, dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")

    def forward(self, contrast: Contrast) -> Tensor:
        ids, classes = contrast.anchor_id, len(self.proxies)
        anchor = unless(~(ids.min() >= 0) | (ids.max() >= classes), contrast.anchor, NO_CLASSES)
        own = ids.unsqueeze(1) == torch.arange(classes, device=ids.device)
        with torch.autocast(anchor.device.type, enabled=False):
            s = anchor @ unit(self.proxies).to(anchor).T  # (A, classes)
            near = log_one_plus_sum(-self.alpha * (s - self.margin), own)
            far = log_one_plus_sum(self.alpha * (s + self.margin), ~own)
            return near.sum() / own.any(dim=0).sum() + far.mean()


def log_one_plus_sum(x: Tensor, chosen: Tensor, dim: int = 0) -> Tensor:
    """log(1 + sum of exp(x)) along a dimension, over what is chosen of it: 1, or 0 elsewhere."""
    x = x * chosen  # a product of floats is ten times as fast as a mask, and exp(-inf) is slow
    peak = x.detach().amax(dim, keepdim=True).clamp_min(0)
    total = ((x - peak).exp() * chosen).sum(dim, keepdim=True) + (-peak).exp()
    return (peak + total.log()).squeeze(dim)
