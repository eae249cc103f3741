"""The decoupled hyperspherical energy loss."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.library.decoupled import Decoupled
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, VARIANT, declare


class DHEL(Decoupled):
    r"""DHEL: decoupled InfoNCE whose negatives are of the anchor's own view, `own_view`.

    .. math:: -w \frac{s^+}{\tau} + \log \sum_j e^{s_j/\tau}, \qquad w = \frac12 \text{ or } 1

    Koromilas et al., "Bridging Mini-Batch and Asymptotic Analysis in Contrastive Learning: From
    InfoNCE to Kernel-Based Losses", ICML 2024, https://arxiv.org/abs/2405.18045. It is DHEL in the
    pairing `own_view`, which recipes of two views have (`--recipe pairing=own_view`). In another
    pairing the negatives are those of that pairing; a training says so in a line.

    The released code (github.com/pakoromilas/DHEL-KCL) takes the negatives of both views and counts
    each positive pair once: w = 1/2 (`variant="official_code"`). With w = 1 (`variant="paper"`) it
    is `decoupled`; in `own_view` that is the code's loss with `include_augs=False`.

    Args:
        temperature: tau > 0; the released code's is 0.3.
        variant: "official_code" or "paper".

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, own_view
    >>> get_loss("dhel", temperature=0.5)(own_view(torch.eye(4), torch.eye(4)))
    tensor(0.0986)
    """

    own_view = True
    ranges = declare(temperature=TEMPERATURE, variant=VARIANT)
    limits = reduces(Limit("decoupled", {"variant": "paper"}))

    temperature: float = 0.3
    variant: str = "official_code"

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        terms = super().row_terms(scores, *log_sums)
        if self.variant == "paper":
            return terms
        return terms + scores.mean_pos(scores.pos) / (2 * self.temperature)
