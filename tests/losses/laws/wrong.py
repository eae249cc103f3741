"""Losses with one mistake each, which users make; the line of it is marked."""

import torch

from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Plain(ScoreLoss):
    """InfoNCE, without a mistake."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))


class TypingError(Plain):
    """A name is misspelt."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.negs / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))


class NoReturn(Plain):
    """The result is not returned."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        -scores.mean_pos(scores.log_share(pos, neg))  # wrong


class Shapes(Plain):
    """Two shapes do not fit."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg[:, 1:] - neg.max(dim=1).values))  # wrong


class TemperatureZero(Plain):
    """The temperature is 0 by default."""

    def __init__(self, temperature: float = 0) -> None:
        super().__init__()
        self.temperature = temperature

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))


class HolesInMean(Plain):
    """The mean over keys includes the holes."""

    def terms(self, scores: Scores):
        return scores.neg.mean(dim=1) - scores.mean_pos(scores.pos)  # wrong


class Root(Plain):
    """The gradient of a root is infinite at zero."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        spread = scores.pos.var(dim=1, correction=0).sqrt()  # wrong
        return spread - scores.mean_pos(scores.log_share(pos, neg))


class TopK(Plain):
    """More negatives than a batch may have."""

    def terms(self, scores: Scores):
        neg = scores.neg.topk(10, dim=1).values / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(scores.pos / self.temperature, neg))


class InPlace(Plain):
    """The scores are changed in place."""

    def terms(self, scores: Scores):
        neg = scores.neg.div_(self.temperature)  # wrong
        return -scores.mean_pos(scores.log_share(scores.pos / self.temperature, neg))


class MeanInTerms(Plain):
    """The terms are averaged before they are combined."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg)).mean()  # wrong


class Square(Plain):
    """A shape (a,) meets a shape (a, 1)."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return scores.log_mean_neg(neg) - scores.mean_pos(pos)  # wrong


class Randomness(Plain):
    """Noise is added in an evaluation too."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        pos = pos + 0.01 * torch.randn_like(pos)  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))


class Device(Plain):
    """A tensor is made without a device."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        margin = torch.full((len(pos), 1), 0.1)  # wrong
        return -scores.mean_pos(scores.log_share(pos - margin, neg))


class Detached(Plain):
    """The gradient of the positives is cut."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos.detach() / self.temperature, scores.neg / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))


class Sign(Plain):
    """The sign of the loss is flipped."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return scores.mean_pos(scores.log_share(pos, neg))  # wrong


class NegativeSign(Plain):
    """Negatives are rewarded for being close."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(pos) - scores.log_mean_neg(neg).squeeze(1)  # wrong


class NoPositives(Plain):
    """The positives are not used."""

    def terms(self, scores: Scores):
        return scores.log_mean_neg(scores.neg / self.temperature)  # wrong


class Flat(Plain):
    """No cosine reaches the margin of a hinge."""

    def terms(self, scores: Scores):
        return (scores.neg.amax(dim=1) - scores.mean_pos(scores.pos) - 3).relu()  # wrong


class NoNegatives(Plain):
    """The negatives are not used."""

    def terms(self, scores: Scores):
        return -scores.mean_pos(scores.pos / self.temperature)  # wrong


class Order(Plain):
    """Anchors are weighed by their place in the batch."""

    def combine(self, terms):
        place = torch.linspace(0, 1, len(terms)).to(terms)  # wrong
        return (place * terms).mean()


class Count(Plain):
    """All keys are counted as negatives."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        mean = torch.logsumexp(neg, dim=1) - torch.tensor(neg.shape[1]).log()  # wrong
        return mean - scores.mean_pos(pos)


class ExpOfZero(Plain):
    """A hole is scored 0 before the exponential."""

    def terms(self, scores: Scores):
        neg = scores.neg.masked_fill(scores.hole, 0) / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(scores.pos / self.temperature, neg))


class Padding(Plain):
    """The mean over positives includes the padding."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.log_share(pos, neg).mean(dim=1)  # wrong


class SumOfPositives(Plain):
    """Positives are summed up."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        share = scores.log_share(pos, neg).masked_fill(scores.padding, 0)
        return -share.sum(dim=1)  # wrong


class SumOfAnchors(Plain):
    """The terms of all anchors are summed up."""

    def combine(self, terms):
        return terms.sum()  # wrong


class SoftmaxOfAnchors(Plain):
    """A softmax over anchors, of which `terms` sees a block."""

    def terms(self, scores: Scores):
        weight = scores.pos.detach().softmax(dim=0)  # wrong
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(weight * scores.log_share(pos, neg))


class Blocks(Plain):
    """A statistic of the batch stands in terms."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        terms = -scores.mean_pos(scores.log_share(pos, neg))
        return terms * (terms - terms.mean())  # wrong


class Number(Plain):
    """A tensor becomes a Python number."""

    def combine(self, terms):
        scale = terms.mean().item()  # wrong
        return (terms / scale).square().mean()


class Overflow(Plain):
    """Exponentials are taken before the logarithm."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        share = pos.exp() / (pos.exp() + neg.exp().sum(dim=1, keepdim=True))  # wrong
        return -scores.mean_pos(share.log())


class TimesTemperature(Plain):
    """Scores times the temperature."""

    def terms(self, scores: Scores):
        pos, neg = scores.pos * self.temperature, scores.neg * self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))


class NoCheck(Plain):
    """Any value of the parameter is accepted."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature  # wrong


class Unused(Plain):
    """A parameter times zero."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.bias = torch.nn.Parameter(torch.ones(()))

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return 0 * self.bias - scores.mean_pos(scores.log_share(pos, neg))  # wrong


class Hidden(Plain):
    """A queue of earlier terms is no buffer."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.queue = torch.zeros(4)  # wrong

    def combine(self, terms):
        loss = terms.mean() + 0.1 * self.queue.to(terms).mean()
        if self.training:
            self.queue = torch.cat([self.queue[1:], terms.detach().mean()[None].cpu()])
        return loss
