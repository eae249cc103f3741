"""The hardness-weighted contrastive loss."""

from torch import Tensor

from contrastbench.losses.library.infonce import InfoNCE
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class Hardness(InfoNCE):
    r"""InfoNCE with each negative weighted by e^{alpha s}, its hardness, as a constant.

    .. math:: -\log \frac{e^{s^+/\tau}}
       {[e^{s^+/\tau}] + \sum_j e^{s_j/\tau + \alpha\, \mathrm{sg}(s_j)}}

    Lan et al., "LLaVE: Large Language and Vision Embedding Models with Hardness-Weighted
    Contrastive Learning", Findings of EMNLP 2025, equation 5, https://arxiv.org/abs/2503.04812.
    EmbeddingGemma (https://arxiv.org/abs/2509.20354) weighs mined negatives so, with alpha = 5;
    here every negative is one of the batch. sg stops the gradient. Unlike `hcl`, the weights are
    not divided by their mean. In sentence-transformers this is `hardness_mode="in_batch_negatives"`
    with `hardness_strength` alpha. The pairing says whether the bracketed positive is there. In
    `whole_row` the positive is one of the s_j, and weighted as they are.

    Args:
        temperature: tau > 0.
        alpha: strength of the weights, >= 0; LLaVE has 9, and 0 gives InfoNCE.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, query_key
    >>> z = torch.tensor([[1.0, 0], [0.8, 0.6], [-1, 0]])
    >>> get_loss("hardness", temperature=0.5, alpha=5.0)(query_key(torch.eye(3)[:, :2], z))
    tensor(1.7324)
    """

    ranges = declare(temperature=TEMPERATURE, alpha=Number(low=0, closed=True, tune=(0, 10)))
    limits = reduces(Limit("infonce", {"alpha": 0}))

    temperature: float = 0.5
    alpha: float = 5.0

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        return (s / self.temperature + self.alpha * s.detach(),)
