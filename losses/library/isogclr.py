"""The robust global contrastive loss of iSogCLR."""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import ScoreLoss, Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.library.sogclr import smoothed_log
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.memory import index_of, log_mean_by, mean_by, moving_average
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class ISogCLR(ScoreLoss):
    r"""SogCLR with a temperature of each training sample, which the loss moves itself.

    .. math:: -s^+ + \tau_i (\log u + \rho), \qquad
       u = (1 - \gamma) \, u_i + \gamma \, \frac1K \sum_j e^{s_j/\tau_i}

    Qiu et al., "Not All Semantics are Created Equal: Contrastive Self-supervised Learning with
    Automatic Temperature Individualization", ICML 2023, https://arxiv.org/abs/2305.11965. The
    gradient of the scores is that of `sogclr`. After each step of a training the temperature takes
    a step of its own, with momentum:

    .. math:: G = \log u + \rho - \frac1u \frac1K \sum_j e^{s_j/\tau_i} \frac{s_j}{\tau_i}, \qquad
       v_i \leftarrow (1 - \beta) v_i + \beta G, \qquad \tau_i \leftarrow \tau_i - \eta v_i

    G is averaged over the sample's anchors, and tau_i is kept between two bounds. That is what the
    library LibAUC 2 computes (`GCLoss_v1` with `enable_isogclr`) in the pairing `both_views`; see
    `sogclr` for the factor 2 and for the value. A start outside the bounds lasts until the sample's
    first step, and for good where eta is 0.

    Args:
        temperature: > 0, a number: tau_i at the start.
        gamma: 0 < gamma <= 1, the share of the batch in the moving average.
        rho: >= 0, the radius of the robust loss; large values lower the temperatures.
        eta: >= 0, the step size of the temperatures; 0 keeps them.
        beta: 0 < beta <= 1, the share of the batch in v_i.
        temperature_min: > 0, the lower bound of tau_i; not above the upper one.
        temperature_max: > 0, the upper bound of tau_i.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import both_views, get_loss, indexed
    >>> loss, z = get_loss("isogclr", temperature=0.5), torch.eye(4)
    >>> loss.prepare_samples(100)
    >>> loss(indexed(both_views(z, z), torch.tensor([3, 14, 15, 92])))
    tensor(-0.8500)
    >>> loss.temperatures[3]
    tensor(0.4973)
    """

    needs_samples = True
    ranges = declare(
        temperature=TEMPERATURE,
        gamma=Number(low=0, high=1, closed="high", tune=(0.1, 1)),
        rho=Number(low=0, closed="low", tune=(0.1, 0.5)),
        eta=Number(low=0, closed="low", tune=(0.001, 0.1), log=True),
        beta=Number(low=0, high=1, closed="high", tune=(0.5, 1)),
        temperature_min=Number(low=0, tune=(0.01, 0.1), log=True),
        temperature_max=Number(low=0, tune=(0.3, 1), log=True),
    )
    limits = reduces(Limit("sogclr", {"eta": 0}, constant=True))
    log_u: Tensor
    temperatures: Tensor
    slopes: Tensor

    temperature: float = 0.1
    gamma: float = 0.9
    rho: float = 0.3
    eta: float = 0.01
    beta: float = 0.9
    temperature_min: float = 0.05
    temperature_max: float = 0.7

    def _set_up(self) -> None:
        if self.temperature_min > self.temperature_max:
            pair = f"{self.temperature_min:g} and {self.temperature_max:g}"
            fix = "lower the first or raise the second"
            raise UserError(f"temperature_min must be <= temperature_max, got {pair}: {fix}")
        for name in ("log_u", "temperatures", "slopes"):
            self.register_buffer(name, torch.empty(0))

    def prepare_samples(self, samples: int) -> None:
        self.log_u = self.log_u.new_full((samples,), -math.inf)
        self.temperatures = self.temperatures.new_full((samples,), self.temperature)
        self.slopes = self.slopes.new_zeros(samples)

    def remembered(self) -> dict[str, Tensor]:
        met = self.log_u.isfinite()
        return {"mean_temperature": self.temperatures[met].mean()} if met.any() else {}

    def forward(self, contrast: Contrast) -> Tensor:
        index = index_of(self, contrast, len(self.log_u))
        temperature = self.temperatures[index].to(contrast.anchor.dtype)
        with torch.autocast(contrast.anchor.device.type, enabled=False):
            terms = self.of_anchors(contrast, partial(of_block, temperature))
            log_u = moving_average(
                self.log_u[index].to(terms.dtype), terms[:, 1].detach(), self.gamma
            )
            if self.training:
                self.remember(index, log_u, terms.detach())
            return self.value(terms, log_u, temperature)

    def terms(self, scores: Scores) -> Tensor:
        temperature = scores.pos.new_full((), self.temperature)
        return of_block(temperature.expand(len(scores.pos)), replace(scores, rows=slice(None)))

    def combine(self, terms: Tensor) -> Tensor:
        """One scalar of samples that are all met for the first time."""
        return self.value(terms, terms[:, 1].detach(), self.temperature)

    def value(self, terms: Tensor, log_u: Tensor, temperature: Tensor | float) -> Tensor:
        """Return the loss of terms with these moving averages."""
        smooth = smoothed_log(log_u, terms[:, 1])
        return (temperature * (smooth + self.rho) - terms[:, 0]).mean()

    def remember(self, index: Tensor, log_u: Tensor, terms: Tensor) -> None:
        """Move what is kept of the samples of a batch."""
        samples, kind = len(self.log_u), self.log_u.dtype
        self.log_u[index] = log_mean_by(index, log_u, samples).to(kind)
        if not self.eta:
            return
        _, log_mean, tilted = terms.unbind(dim=1)
        slope = log_u + self.rho - (log_mean - log_u).exp() * tilted
        batch = mean_by(index, slope, samples).to(kind)
        self.slopes[index] = (1 - self.beta) * self.slopes[index] + self.beta * batch
        stepped = self.temperatures[index] - self.eta * self.slopes[index]
        self.temperatures[index] = stepped.clamp(self.temperature_min, self.temperature_max)


def of_block(temperature: Tensor, scores: Scores) -> Tensor:
    """Return (a, 3) positive, log of the negatives' mean, and mean of their weighted logits.

    Args:
        temperature: (A,) of all anchors.
        scores: of a block of them.
    """
    logits = scores.neg / temperature[scores.rows].unsqueeze(1)
    with torch.no_grad():
        weighted = torch.softmax(logits, dim=1) * scores.filled(logits, 0)
    pos = scores.mean_pos(scores.pos).unsqueeze(1)
    return torch.cat([pos, scores.log_mean_neg(logits), weighted.sum(1, keepdim=True)], dim=1)
