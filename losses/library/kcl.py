"""The kernel contrastive loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import SummedLoss
from contrastbench.losses.ranges import Choice, Number, declare


class KCL(SummedLoss):
    r"""KCL: a kernel of positive pairs against its mean over pairs of the own view, `own_view`.

    .. math:: -\frac1P \sum_p k(s^+_p) + \gamma \frac1K \sum_j k(s_j), \qquad
       k = e^{-t d}, \; -\log(1 + t d) \text{ or } \frac{t}{\sqrt{t^2 + d}}, \qquad d = 2 - 2 s

    Koromilas et al., "Bridging Mini-Batch and Asymptotic Analysis in Contrastive Learning: From
    InfoNCE to Kernel-Based Losses", ICML 2024, https://arxiv.org/abs/2405.18045. It is KCL in the
    pairing `own_view`, which recipes of two views have (`--recipe pairing=own_view`). In another
    pairing the negatives are those of that pairing; a training says so in a line.

    The released code (github.com/pakoromilas/DHEL-KCL) halves the logarithmic kernel for negatives
    alone: that is this loss with half of gamma. Its Riesz kernels are left out, which are infinite
    or have an infinite gradient where two rows are equal.

    Args:
        t: > 0, the inverse width of the kernel; of "imq" the width.
        gamma: > 0, the weight of the negatives.
        kernel: "gaussian", "log" or "imq", the inverse multiquadric.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, own_view
    >>> get_loss("kcl", t=0.5)(own_view(torch.eye(4), torch.eye(4)))
    tensor(4.8861)
    """

    own_view = True
    ranges = declare(
        t=Number(low=0, tune=(0.5, 8), log=True),
        gamma=Number(low=0, tune=(1, 32), log=True),
        kernel=Choice("gaussian", "log", "imq"),
    )

    t: float = 2.0
    gamma: float = 16.0
    kernel: str = "gaussian"

    def summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.similarity(s),)

    def row_terms(self, scores: Scores, *sums: Tensor) -> Tensor:
        neg = (sums[0] / scores.count).squeeze(1)
        return self.gamma * neg - scores.mean_pos(self.similarity(scores.pos))

    def similarity(self, s: Tensor) -> Tensor:
        """Return the kernel of two rows with these cosines."""
        square = (2 - 2 * s).clamp_min(0)  # rounding makes cosines above 1
        if self.kernel == "gaussian":
            return (-self.t * square).exp()
        if self.kernel == "log":
            return -(self.t * square).log1p()
        return self.t * (self.t**2 + square).rsqrt()
