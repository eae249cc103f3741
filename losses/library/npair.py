"""The (n+1)-tuplet loss of metric learning."""

from torch import Tensor
from torch.nn.functional import logsigmoid, threshold

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Choice, declare


class NPair(ExponentialLoss):
    r"""N-pair: the positive is more similar than every negative.

    .. math:: \log\left(1 + \sum_j e^{(s_j - s^+)/\gamma}\right) \qquad \text{or} \qquad
       \log\left(1 + \sum_j e^{(d^+ - d_j)/\gamma}\right), \quad d = \lVert z - z' \rVert_2

    The first form ("cosine") is equation 6 of Sohn, "Improved Deep Metric Learning with Multi-class
    N-pair Loss Objective", NeurIPS 2016. Here embeddings have length one, and gamma is a
    temperature. The second form ("distance") is equation 1 of Chen et al., "Robust Similarity
    Learning with Difference Alignment Regularization" (DASL), ICLR 2024,
    https://openreview.net/forum?id=K9V7ugVuUz. That paper takes gamma = 0.2. The positive is always
    in the denominator, for every pairing. In `whole_row` it is there twice, because it is one of
    the negatives too.

    https://proceedings.neurips.cc/paper/2016/hash/6b180037abbebea991d8b1232f8a8ca9-Abstract.html

    Args:
        temperature: gamma > 0.
        similarity: "cosine" or "distance".

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> get_loss("npair", temperature=1.0)(both_views(torch.eye(4), torch.eye(4)))
    tensor(1.1654)
    """

    ranges = declare(temperature=TEMPERATURE, similarity=Choice("cosine", "distance"))
    limits = reduces(
        Limit(
            "infonce",
            {"similarity": "cosine"},
            positive_in_denominator=True,
            mean_over_negatives=False,
        )
    )

    temperature: float = 1.0
    similarity: str = "cosine"

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        similarity = s if self.similarity == "cosine" else -distance(s)
        return (similarity / self.temperature,)

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        (pos,), (total,) = self.log_summands(scores.pos), log_sums
        return -scores.mean_pos(logsigmoid(pos - total))


def distance(s: Tensor) -> Tensor:
    """Euclidean distance of unit vectors of cosine s; its gradient is zero where they coincide."""
    # a true gradient is infinite there; 1e-12 is below what cosines in float64 can tell apart, and
    # a nan stays
    return threshold(2 - 2 * s, 1e-12, 0).sqrt()
