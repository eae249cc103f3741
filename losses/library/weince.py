"""The loss of WEINCE."""

import math

import torch
from torch import Tensor
from torch.nn.functional import threshold

from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.limits import Limit, Towards, inf, reduces
from contrastbench.losses.ranges import TEMPERATURE, VARIANT, Number, declare

# of an anchor's negatives, its tail: the hardest tenth, at least so many
TAIL_SHARE, MIN_TAIL = 0.1, 32
# quantile of the shortfalls of all anchors, from which an anchor is near the cap
HARDEST_QUANTILE = 0.2
MIN_SHORTFALL = 1e-6  # of a shortfall


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

    temperature: float = 0.5
    margin: float = 2.0
    kappa_rho: float = 10.0
    kappa_aic: float = 1.0
    variant: str = "official_code"

    def terms(self, scores: Scores) -> Tensor:
        of_batch = scores.of_batch(tails, self.blend)
        gumbel, weibull = (x.unsqueeze(1) for x in of_batch[scores.rows].unbind(1))
        sharp = gumbel / self.temperature

        def logit(s: Tensor) -> Tensor:
            return sharp * s - weibull * threshold(1 - s, MIN_SHORTFALL, MIN_SHORTFALL).log()

        neg = scores.filled(logit(scores.filled(scores.neg, 0)), -math.inf)
        return -scores.mean_pos(scores.log_share(logit(scores.pos), neg))

    def blend(self, evidence: Tensor) -> Tensor:
        """(A, 2) the factors of s / tau and -log(1 - s), from what `tails` says of each anchor."""
        log_rho, slope, better = evidence.unbind(1)
        near_cap = (self.kappa_rho * (quantile(log_rho) - log_rho)).sigmoid()
        lam = near_cap * (self.kappa_aic * (better - self.margin)).sigmoid()
        beta = (-slope).clamp_min(0) if self.variant == "paper" else 1.0
        return torch.stack([1 - lam, lam * beta], dim=1)


def quantile(x: Tensor) -> Tensor:
    """Return the number of x at the quantile HARDEST_QUANTILE, without interpolation.

    >>> quantile(torch.tensor([5.0, 1.0, 4.0, 3.0, 2.0]))
    tensor(2.)
    """
    return x.sort().values[round(HARDEST_QUANTILE * (len(x) - 1))]


def tails(scores: Scores) -> Tensor:
    """Fit both lines to each anchor's tail by least squares.

    Returns:
        (a, 3) the logarithm of the shortfall; the Weibull line's slope, where -log F falls; by how
        much its AIC is below the Gumbel line's, -inf for two points, because they fit any line.
    """
    count, keys = scores.count, scores.neg.shape[1]
    size = (TAIL_SHARE * count).round().clamp_min(MIN_TAIL).minimum(count)  # (a, 1)
    hardest = largest(scores.neg, min(keys, max(MIN_TAIL, round(TAIL_SHARE * keys))))
    rank = torch.arange(1, hardest.shape[1] + 1, device=hardest.device)
    used = (rank <= size) & (rank > (size / 20).clamp_min(1))  # without the first twentieth
    points = used.sum(dim=1, keepdim=True).clamp_min(1)
    x = (1 - hardest).clamp(MIN_SHORTFALL, 2).log()
    y = ((size + 1) / rank).where(used, 2.0).log()  # -log F
    slope, residual = least_squares(x, torch.stack([y, y.log()]), used, points)
    weibull, gumbel = residual + 1e6 * (slope >= 0)  # a line that rises is no tail of its kind
    better = (points[:, 0] * (gumbel / weibull).log()).where(points[:, 0] > 2, -math.inf)
    return torch.stack([x[:, 0], slope[0], better], dim=1)


def largest(x: Tensor, k: int) -> Tensor:
    """(a, k) the largest of each row of x, which are falling.

    NumPy's partition and sort on a CPU take a fifth of the time of torch's. No gradient flows.

    >>> largest(torch.tensor([[1.0, 3.0, -math.inf, 2.0]]), 2)
    tensor([[3., 2.]])
    """
    if x.device.type != "cpu":
        return x.topk(k, dim=1).values
    rows = x.detach().neg().numpy()
    rows.partition(k - 1, axis=1)
    rows[:, :k].sort(axis=1)
    return torch.from_numpy(rows[:, :k]).neg()


def least_squares(x: Tensor, y: Tensor, used: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return (2, a) slopes of least squares and squared residuals of two y against one x."""
    x, y = (used * (v - (used * v).sum(-1, keepdim=True) / points) for v in (x, y))
    slope = (x * y).sum(-1) / x.square().sum(-1).clamp_min(1e-12)
    return slope, (y - slope.unsqueeze(-1) * x).square().sum(-1).clamp_min(1e-12)
