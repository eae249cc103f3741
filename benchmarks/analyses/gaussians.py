r"""Correlated Gaussians, whose mutual information and divergences are known exactly."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

SAMPLE_PAIRS = 2**17  # for what has no closed form: the mean of nats is then right to about 0.01


@dataclass(frozen=True)
class Gaussians:
    r"""Pairs (x, y) of unit normals, each coordinate of y correlated with that of x by rho.

    .. math:: I(X; Y) = -\frac d2 \log(1 - \rho^2)

    P is the distribution of pairs, Q that of x and y apart. Lee and Shin (RényiCL, NeurIPS 2022),
    appendix C.2, after Poole et al. 2019, https://arxiv.org/abs/1905.06922; the paper prints
    log(1 - rho / 2), which is no information of Gaussians.

    Args:
        information: nats, >= 0.
        dimensions: d.

    >>> round(Gaussians(10.0).rho, 4)
    0.7951
    """

    information: float
    dimensions: int = 20

    @property
    def rho(self) -> float:
        """The correlation that has this information."""
        return math.sqrt(-math.expm1(-2 * self.information / self.dimensions))

    def draw(
        self, pairs: int, rng: torch.Generator, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        """(pairs, d) x and y, row i of both a pair of P."""
        x, noise = torch.randn(2, pairs, self.dimensions, generator=rng, dtype=dtype)
        return x, self.rho * x + math.sqrt(1 - self.rho**2) * noise

    def log_ratio(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Log of dP/dQ for rows of x and y: (..., d) -> (...).

        .. math:: -\frac d2 \log(1 - \rho^2)
           + \frac{\rho\, x^\top y - \frac12 \rho^2 (\|x\|^2 + \|y\|^2)}{1 - \rho^2}
        """
        squares = (x.square() + y.square()).sum(dim=-1)
        inner = self.rho * (x * y).sum(dim=-1) - self.rho**2 / 2 * squares
        return self.information + inner / (1 - self.rho**2)

    def renyi(self, gamma: float) -> float:
        r"""The Rényi divergence of order gamma from Q to P, in nats, as RényiCL scales it.

        .. math:: R_\gamma(P \Vert Q) = \frac{1}{\gamma (\gamma - 1)} \log \mathbb{E}_Q\left[
           \left(\frac{dP}{dQ}\right)^\gamma\right] = -\frac{d}{2\gamma} \log(1 - \rho^2)
           - \frac{d}{2\gamma(\gamma - 1)} \log\left(1 - (\gamma - 1)^2 \rho^2\right)

        It is infinite where (gamma - 1) rho >= 1, and the information itself for gamma = 2 and for
        gamma to 1.

        >>> round(Gaussians(4.0).renyi(2.0), 12), Gaussians(4.0).renyi(3.0)
        (4.0, inf)
        """
        tilt = ((gamma - 1) * self.rho) ** 2
        if tilt >= 1:
            return math.inf
        rest = self.dimensions / 2 * math.log1p(-tilt) / (gamma - 1)
        return (self.information - rest) / gamma

    def divergence(self, alpha: float, gamma: float | None) -> float:
        r"""Return the divergence from alpha P + (1 - alpha) Q to P that objectives bound, in nats.

        .. math:: D^{(\alpha)}_{KL} = \mathbb{E}_P[\log r_\alpha], \quad R^{(\alpha)}_\gamma =
           \frac{\log \mathbb{E}_P[r_\alpha^{\gamma - 1}]}{\gamma (\gamma - 1)}, \quad
           r_\alpha = \frac{r}{\alpha r + 1 - \alpha}, \quad r = \frac{dP}{dQ}

        Lee and Shin, section 4. As r_alpha <= 1 / alpha the first is at most log(1 / alpha), the
        second that over gamma. Without skew these are closed forms, with it means over drawn pairs.

        Args:
            alpha: the skew, 0 <= alpha < 1.
            gamma: the order, or None for the Kullback-Leibler divergence.
        """
        if alpha == 0:
            return self.information if gamma is None else self.renyi(gamma)
        rng = torch.Generator().manual_seed(0)
        log_r = self.log_ratio(*self.draw(SAMPLE_PAIRS, rng, torch.float64))
        skewed = log_r - torch.logaddexp(
            log_r + math.log(alpha), torch.full_like(log_r, math.log1p(-alpha))
        )
        if gamma is None:
            return float(skewed.mean())
        tilted = torch.logsumexp((gamma - 1) * skewed, dim=0) - math.log(len(skewed))
        return float(tilted) / (gamma * (gamma - 1))
