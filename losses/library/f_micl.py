"""Mutual information by f-divergences, with a Gaussian kernel."""

import math
from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import SummedLoss
from contrastbench.losses.limits import Limit, Towards, reduces
from contrastbench.losses.ranges import Choice, Number, declare

OfKernel = Callable[[Tensor, float], Tensor]  # of log G and k
# f' of the kernel G for each f, and f* of that
DIVERGENCES: dict[str, tuple[OfKernel, OfKernel]] = {
    "kl": (lambda x, k: 1 + x, lambda x, k: x.exp()),
    "js": (lambda x, k: math.log(2) + logsigmoid(x), lambda x, k: softplus(x) - math.log(2)),
    "chi2": (lambda x, k: 2 * x.expm1(), lambda x, k: (2 * x).expm1()),
    "sh": (lambda x, k: -(-x / 2).expm1(), lambda x, k: (x / 2).expm1()),
    "tsallis": (lambda x, k: k / (k - 1) * ((k - 1) * x).exp(), lambda x, k: (k * x).exp()),
    "vlc": (
        lambda x, k: 1 - 4 / (1 + x.exp()) ** 2,
        lambda x, k: 3 + (y := 2 / (1 + x.exp())) ** 2 - 4 * y,
    ),
}


class FMICL(SummedLoss):
    r"""Mutual information by an f-divergence (f-MICL) whose density ratio is a Gaussian kernel.

    .. math:: -\mathbb{E}_P[f'(G)] + \lambda\, \mathbb{E}_Q[f^*(f'(G))], \qquad
       G = e^{-\lVert z - z' \rVert_2^2 / 2\sigma^2} = e^{(s - 1) / \sigma^2}

    Lu et al., "f-MICL: Understanding and Generalizing InfoNCE-based Contrastive Learning", TMLR
    2023, https://arxiv.org/abs/2402.10150: the objective with the f-Gaussian similarity. P are
    positive pairs, Q negative ones, f* is the conjugate of f. No code of the authors
    is known.

    .. list-table::
       :header-rows: 1

       * - f
         - f(u)
         - f'(u)
         - f*(f'(u))
       * - kl
         - :math:`u \log u`
         - :math:`1 + \log u`
         - :math:`u`
       * - js
         - :math:`u \log u - (u + 1) \log \frac{u + 1}{2}`
         - :math:`\log \frac{2u}{u + 1}`
         - :math:`\log \frac{u + 1}{2}`
       * - chi2 (Pearson)
         - :math:`(u - 1)^2`
         - :math:`2 (u - 1)`
         - :math:`u^2 - 1`
       * - sh (squared Hellinger)
         - :math:`(\sqrt{u} - 1)^2`
         - :math:`1 - u^{-1/2}`
         - :math:`u^{1/2} - 1`
       * - tsallis
         - :math:`\frac{u^k}{k - 1}`
         - :math:`\frac{k}{k - 1} u^{k - 1}`
         - :math:`u^k`
       * - vlc (Vincze-Le Cam)
         - :math:`\frac{(u - 1)^2}{u + 1}`
         - :math:`1 - \frac{4}{(u + 1)^2}`
         - :math:`3 + \frac{4}{(u + 1)^2} - \frac{8}{u + 1}`

    Args:
        f: "kl", "js", "chi2", "sh", "tsallis" or "vlc".
        sigma: > 0, the width of the kernel.
        weight: lambda > 0, the weight of the negative pairs.
        k: the order of "tsallis", > 1; the others have none.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("f_micl")(both_views(torch.eye(4), torch.eye(4)))
    tensor(-0.6321)
    """

    ranges = declare(
        f=Choice("kl", "js", "chi2", "sh", "tsallis", "vlc"),
        sigma=Number(low=0, tune=(0.4, 2), log=True),
        weight=Number(low=0, tune=(0.5, 50), log=True),
        k=Number(low=1, tune=(1.1, 3)),
    )
    limits = reduces(
        Limit("nwj", {"f": "kl", "sigma": 1, "weight": 1}, {"temperature": 1, "alpha": 0}),
        Limit("f_micl", {"f": "tsallis", "k": 2}, {"f": "chi2"}, constant=True),
        Limit(
            "f_micl", {"f": "tsallis", "k": Towards(1, near=1 + 1e-7)}, {"f": "kl"}, constant=True
        ),
    )

    f: str = "kl"
    sigma: float = 1.0
    weight: float = 1.0
    k: float = 1.5

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        _, conjugate = DIVERGENCES[self.f]
        return (conjugate((s - 1) / self.sigma**2, self.k),)

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        similarity, _ = DIVERGENCES[self.f]
        pos = similarity((scores.pos - 1) / self.sigma**2, self.k)
        return self.weight * (sums[0] / scores.count).squeeze(1) - scores.mean_pos(pos)
