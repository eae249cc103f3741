"""The loss of WEINCE."""

import math

import torch
from torch import Tensor

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import TEMPERATURE, VARIANT, Number, declare

SHARE, LEAST = 0.1, 32  # of an anchor's negatives, its tail: the hardest tenth, at least so many
HARDEST = 0.2  # quantile of the shortfalls of all anchors, from which an anchor is near the cap
SMALLEST = 1e-6  # of a shortfall


class WEINCE(ScoreLoss):
    r"""InfoNCE whose logits lean to -log(1 - s) where an anchor's hardest negatives ask for it.

    .. math:: -\log \frac{e^{\ell(s^+)}}{[e^{\ell(s^+)}] + \sum_j e^{\ell(s_j)}}, \qquad
       \ell(s) = (1 - \lambda) \frac s\tau - \lambda \beta \log(1 - s)

    .. math:: \lambda = \sigma\left(\kappa_\rho \log \frac{\rho_0}{\rho}\right)
       \sigma\left(\kappa_{AIC} (\Delta - m)\right)

    Erol et al., "When Softmax Fails at the Top: Extreme Value Corrections for InfoNCE", ICML 2026,
    https://arxiv.org/abs/2606.00262. Each anchor has a lambda, a constant in the gradient. Its
    shortfall rho is 1 - s of its hardest negative, and rho_0 the batch's quantile 0.2 of these.
    Delta is AIC of a fast Gumbel tail minus AIC of a Weibull tail. Both are straight lines fitted
    to the hardest tenth of the negatives, 32 at least: log F, or log(-log F), against log(1 - s).
    The lambda is that of the released code, but 0 for tails of two points. The pairing says whether
    the bracketed positive is there (in the paper it is).

    Args:
        temperature: tau > 0.
        margin: m, by which the Weibull tail must be better; large values give InfoNCE.
        kappa_rho: > 0, how sharply an anchor near the cap is told from others.
        kappa_aic: > 0, how sharply the better tail is told.
        variant: "official_code" has beta = 1 (policy `tlambda_select`). "paper" has the beta of the
            paper's formula for each anchor. The code estimates it as the slope of the Weibull line
            and does not use it in this policy; that slope is taken here, 0 at least.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss
    >>> z = torch.tensor([[1.0, 0], [0.8, 0.6], [0, 1], [-1, 0]])
    >>> get_loss("weince", temperature=0.5)(both_views(z, z.roll(1, 1)))
    tensor(4.6009)
    """

    ranges = declare(
        temperature=TEMPERATURE,
        margin=Number(tune=(0, 6)),
        kappa_rho=Number(low=0, tune=(5, 20), log=True),
        kappa_aic=Number(low=0, tune=(0.5, 2), log=True),
        variant=VARIANT,
    )
    limits = reduces(Limit("infonce", {"margin": Towards(inf, near=1e9)}))

    def __init__(
        self,
        temperature: float = 0.5,
        margin: float = 2.0,
        kappa_rho: float = 10.0,
        kappa_aic: float = 1.0,
        variant: str = "official_code",
    ) -> None:
        super().__init__()
        self.temperature = self.checked("temperature", temperature)
        self.margin = self.checked("margin", margin)
        self.kappa_rho = self.checked("kappa_rho", kappa_rho)
        self.kappa_aic = self.checked("kappa_aic", kappa_aic)
        self.variant = self.checked("variant", variant)

    def terms(self, scores: Scores) -> Tensor:
        slope, weibull, gumbel, points = tail(scores)
        better = points * (gumbel / weibull).log()  # the difference of the two AIC
        closer = quantile(scores.of_batch(shortfall)).log() - shortfall(scores).log()
        near_cap = (self.kappa_rho * closer).sigmoid()
        lam = near_cap * (self.kappa_aic * (better - self.margin)).sigmoid()
        lam = lam.where(points > 2, 0).unsqueeze(1).detach()  # two points fit any line
        beta = slope.unsqueeze(1).detach() if self.variant == "paper" else 1.0

        def logit(s: Tensor) -> Tensor:
            return (1 - lam) * s / self.temperature - lam * beta * (1 - s).clamp_min(SMALLEST).log()

        neg = logit(scores.neg.masked_fill(scores.hole, 0)).masked_fill(scores.hole, -math.inf)
        return -scores.mean_pos(scores.log_share(logit(scores.pos), neg))


def shortfall(scores: Scores) -> Tensor:
    """Return (a,) 1 - s of each anchor's hardest negative."""
    return (1 - scores.neg.amax(dim=1)).clamp_min(SMALLEST)


def quantile(x: Tensor) -> Tensor:
    """Return the number of x at the quantile HARDEST, without interpolation.

    >>> quantile(torch.tensor([5.0, 1.0, 4.0, 3.0, 2.0]))
    tensor(2.)
    """
    return x.sort().values[round(HARDEST * (len(x) - 1))]


def tail(scores: Scores) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Fit both lines to each anchor's tail.

    Returns:
        (a,) each: the Weibull line's slope, 0 at least; the squared residuals of the Weibull and of
        the Gumbel line; the number of points.
    """
    count = scores.count
    size = (SHARE * count).round().clamp_min(LEAST).minimum(count)  # (a, 1)
    most = min(scores.neg.shape[1], max(LEAST, round(SHARE * scores.neg.shape[1])))
    hardest = scores.neg.detach().topk(most, dim=1).values
    rank = torch.arange(1, most + 1, device=hardest.device)
    burnt = (size / 20).floor().clamp_min(1)  # the first ones are left out
    used = (rank > burnt) & (rank <= size)
    x = (1 - hardest.where(used, 0)).clamp_min(SMALLEST).log()
    log_f = (rank / (size + 1)).where(used, 0.5).log()
    slope, weibull = line(x, log_f, used)
    other, gumbel = line(x, (-log_f).log(), used)
    # a slope of the wrong sign is no tail of that kind
    weibull, gumbel = weibull + 1e6 * (slope <= 0), gumbel + 1e6 * (other >= 0)
    return slope.clamp_min(0), weibull, gumbel, used.sum(dim=1)


def line(x: Tensor, y: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slopes (a,) of least squares and the squared residuals (a,) of the used points."""
    points = used.sum(dim=1, keepdim=True).clamp_min(1)
    x, y = (used * (v - (used * v).sum(dim=1, keepdim=True) / points) for v in (x, y))
    slope = (x * y).sum(dim=1) / x.square().sum(dim=1).clamp_min(1e-12)
    residual = (y - slope.unsqueeze(1) * x).square().sum(dim=1)
    return slope, residual.clamp_min(1e-12)
