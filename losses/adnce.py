"""ADNCE: InfoNCE with re-weighted negatives."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores, in_range, one_of


class ADNCE(ScoreLoss):
    r"""Adjusted InfoNCE: negatives near a score mu count more than easy and than too hard ones.

    .. math:: -\log \frac{e^{s^+/\tau}}{[e^{s^+/\tau}] + \sum_j \frac{w(s_j)}{\bar w} e^{s_j/\tau}}, \qquad
       w(s) \propto e^{-\frac12 \left(\frac{s - \mu}{\sigma}\right)^2}

    Wu et al., "Understanding Contrastive Learning via Distributionally Robust Optimization", NeurIPS 2023, equations
    11 and 12. The weights are detached and divided by their mean over the anchor's negatives. The pairing says whether
    the bracketed positive is there: in the released image code yes, in the graph code no (and a mean for the sum), and
    in the sentence code it is one of the re-weighted keys.

    Args:
        temperature: tau > 0.
        mu: the score that gets the largest weight; from 1 on the weight grows up to the hardest negative.
        sigma: width of the weights, > 0; large values give InfoNCE.
        variant: "official_code", which is equation 11, weighs the cosine s. "paper" is the paper's pseudo-code
            (Figure 5) to the letter: there the weight's argument is exp(s / tau), in none of the three released codes.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1, z2 = torch.tensor([[1.0, 0], [0, 1], [-1, 0]]), torch.tensor([[0.8, 0.6], [0, 1], [-0.6, 0.8]])
    >>> get_loss("adnce", temperature=0.2, mu=0.7, sigma=1.0)(other_view(z1, z2))
    tensor(-3.0433)
    """

    def __init__(
        self, temperature: float = 0.5, mu: float = 0.7, sigma: float = 1.0, variant: str = "official_code"
    ) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)
        self.mu = in_range("mu", mu)
        self.sigma = in_range("sigma", sigma, low=0)
        self.variant = one_of("variant", variant, ("official_code", "paper"))

    def terms(self, scores: Scores) -> Tensor:
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        argument = scores.neg if self.variant == "official_code" else neg.exp()
        log_w = self.log_weight(argument).masked_fill(scores.neg.isneginf(), -math.inf).detach()
        log_mean_w = torch.logsumexp(log_w, dim=1, keepdim=True) - scores.count.log()
        return (scores.log_denominator(pos, neg + log_w - log_mean_w) - pos).mean(dim=1)

    def log_weight(self, s: Tensor) -> Tensor:
        """Log of equation 11 up to its factor, which the mean removes; the clamp keeps a row of tiny weights finite."""
        return (-0.5 * ((s - self.mu) / self.sigma).square()).clamp_min(-1e30)
