"""ADNCE: InfoNCE with re-weighted negatives."""

from torch import Tensor

from contrastbench.losses.base import Scores
from contrastbench.losses.exponential import ExponentialLoss
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import (
    SCORE,
    SHAPE,
    TEMPERATURE,
    VARIANT,
    Choice,
    Given,
    Number,
    declare,
)


class ADNCE(ExponentialLoss):
    r"""Adjusted InfoNCE: negatives near a score mu count more than easy and than too hard ones.

    .. math:: -\log \frac{e^{s^+/\tau}}
       {[e^{s^+/\tau}] + \sum_j \frac{w(s_j)}{\bar w} e^{s_j/\tau}}, \qquad
       w(s) \propto e^{-\frac12 \left(\frac{s - \mu}{\sigma}\right)^2}

    Wu et al., "Understanding Contrastive Learning via Distributionally Robust Optimization",
    NeurIPS 2023, equations 11 and 12, https://arxiv.org/abs/2310.11048. The weights are detached
    and divided by their mean over the anchor's negatives. The pairing says whether the bracketed
    positive is there. The released image code has it, and the graph code leaves it out (and takes a
    mean for the sum). In the sentence code it is one of the re-weighted keys.

    Table 11 has three other weights, with x = s + 1, m = mu and n = sigma. They are "gamma" x^{m-1}
    e^{-x/n}, "rayleigh" x e^{-x^2 / 2m^2} and "chi2" x^{m/2-1} e^{-x/2}. The last two have no n.

    Args:
        temperature: tau > 0.
        mu: the score that gets the largest weight; from 1 on the weight grows up to the hardest
            negative. > 0 for the weights of Table 11.
        sigma: width of the weights, > 0; large values give InfoNCE.
        weight: "gaussian", "gamma", "rayleigh" or "chi2".
        variant: "official_code", which is equation 11, weighs the cosine s. "paper" is the paper's
            pseudo-code (Figure 5) to the letter: there the weight's argument is exp(s / tau), in
            none of the three released codes.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, other_view
    >>> z1 = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    >>> z2 = torch.tensor([[0.8, 0.6], [0, 1], [-0.6, 0.8]])
    >>> get_loss("adnce", temperature=0.2, mu=0.7, sigma=1.0)(other_view(z1, z2))
    tensor(-3.0433)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        mu=Given("weight", {"gaussian": SCORE, "gamma": SHAPE, "rayleigh": SHAPE, "chi2": SHAPE}),
        sigma=Number(low=0, tune=(0.1, 2), log=True),
        weight=Choice("gaussian", "gamma", "rayleigh", "chi2"),
        variant=VARIANT,
    )
    limits = reduces(
        Limit(
            "infonce",
            {"sigma": Towards(inf, near=1e6), "weight": "gaussian", "variant": "official_code"},
        )
    )

    temperature: float = 0.5
    mu: float = 0.7
    sigma: float = 1.0
    weight: str = "gaussian"
    variant: str = "official_code"

    def log_summands(self, s: Tensor) -> tuple[Tensor, ...]:
        argument = s if self.variant == "official_code" else (s / self.temperature).exp()
        # the clamp keeps a row of tiny weights finite; 1e30 is a number in float32
        log_w = self.log_weight(argument).clamp_min(-1e30).detach()
        return s / self.temperature + log_w, log_w

    def row_terms(self, scores: Scores, *log_sums: Tensor) -> Tensor:
        pos, (weighted, weights) = scores.pos / self.temperature, log_sums
        log_mean_w = weights - scores.count.log()
        return -scores.mean_pos(scores.log_share(pos, weighted - log_mean_w))

    def log_weight(self, s: Tensor) -> Tensor:
        """Log of equation 11 or of Table 11's densities, up to the factor that the mean removes."""
        if self.weight == "gaussian":
            return -0.5 * ((s - self.mu) / self.sigma).square()
        # at x = 0 the densities are zero or infinite; cosines are known to about 1e-6 in float32
        x = (s + 1).clamp_min(1e-6)
        if self.weight == "gamma":
            return (self.mu - 1) * x.log() - x / self.sigma
        if self.weight == "rayleigh":
            return x.log() - 0.5 * (x / self.mu).square()
        return (self.mu / 2 - 1) * x.log() - x / 2
