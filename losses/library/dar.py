"""The difference alignment regularisation of DASL."""

from math import inf
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from contrastbench.errors import UserError
from contrastbench.losses import blocks
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, unless
from contrastbench.losses.ranges import Choice, declare

EXACT = "donot_use_mm_for_euclid_dist"  # products would cancel where two are nearly alike
PARTS = 16  # of the rows, at least: each meets the rows after it, and itself twice
NO_DIFFERENCE = (
    "all anchors are the same sample, so no difference can be aligned: use another batch"
)


class DAR(Loss):
    r"""Difference alignment: differences between embeddings of two samples should be alike.

    .. math:: \frac{2}{n (n-1)} \sum_{j < k} \lVert D_j - D_k \rVert_2, \qquad
       D_j = z_{j-1} - z_j \ \text{(chain)} \quad \text{or} \quad D_j = z_0 - z_j \ \text{(star)}

    Chen et al., "Robust Similarity Learning with Difference Alignment Regularization" (DASL), ICLR
    2024, https://openreview.net/forum?id=K9V7ugVuUz: the cross-total-variation norm of equation 4
    in its stochastic form. Appendix B.1 prints the chain, and footnote 1 prints the star. In the
    star the anchor cancels: D_j - D_k = z_k - z_j. The vectors z are the anchors of the contrast in
    their order. The paper aligns differences between classes only, so a difference between two rows
    of one id is left out. Add it to a loss: `infonce + 0.5*dar` (equation 8, lambda = 0.5).

    The meaning of lambda depends on the reduction. The paper's norm is a sum over pairs ("sum"),
    which grows with the square of the batch: 2 x 256 anchors have 511 differences and 130,305
    pairs. With "mean", a weight means the same for every batch. Here z are unit vectors, while the
    paper leaves open whether its phi is normalised.

    Args:
        form: "chain" or "star".
        reduction: "mean" or "sum" over the pairs.

    Raises:
        ValueError: unknown form or reduction.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> get_loss("dar")(other_view(torch.eye(4), torch.eye(4)))
    tensor(2.2997)
    """

    ordered = True  # a chain is a chain of neighbours
    block_elements: int | None = None  # lengths held at once; None: as many as suit the device

    ranges = declare(form=Choice("chain", "star"), reduction=Choice("mean", "sum"))

    form: str = "chain"
    reduction: str = "mean"

    def forward(self, contrast: Contrast) -> Tensor:
        differences, apart = first_order(contrast, self.form)
        rows, device = len(differences), differences.device
        elements = self.block_elements or blocks.block_elements(device, rows**2)
        step = max(1, min(elements // rows, rows // PARTS))
        with torch.autocast(device.type, enabled=False):
            norms = cast(Tensor, TotalLength.apply(differences, apart, step))
        total, n = unless(~apart.any(), norms, NO_DIFFERENCE), apart.sum()
        return total / (n * (n - 1) / 2).clamp_min(1) if self.reduction == "mean" else total


def first_order(contrast: Contrast, form: str) -> tuple[Tensor, Tensor]:
    """(n, D) differences between anchors, and (n,) which are of different ids."""
    z, ids = contrast.anchor, contrast.anchor_id
    if len(ids) < 2:
        raise UserError(NO_DIFFERENCE)
    start = slice(0, -1) if form == "chain" else slice(0, 1)
    return z[start] - z[1:], ids[start] != ids[1:]


class TotalLength(torch.autograd.Function):
    """The lengths of the differences between two rows each, added up; and its gradient at once.

    The gradient by row j is the sum over k of the unit vectors from row k to row j.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, apart: Tensor, step: int) -> Tensor:
        total, slope, counts = x.new_zeros(()), torch.zeros_like(x), apart.to(x.dtype)
        for start in range(0, len(x), step):
            rows, rest = x[start : start + step], x[start:]  # each pair once
            lengths = torch.cdist(rows, rest, compute_mode=EXACT).triu_(1)
            lengths *= counts[start:]
            lengths *= counts[start : start + step].unsqueeze(1)
            total += lengths.sum()
            if ctx.needs_input_grad[0]:
                pull = lengths.reciprocal_().masked_fill_(lengths == inf, 0)
                slope[start : start + step] += pull.sum(1, keepdim=True) * rows - pull @ rest
                slope[start:] += pull.sum(0).unsqueeze(1) * rest - pull.T @ rows
        ctx.save_for_backward(slope)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return upstream * slope, None, None
