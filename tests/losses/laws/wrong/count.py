import torch

from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """All keys are counted as negatives."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        mean = torch.logsumexp(neg, dim=1) - torch.tensor(neg.shape[1]).log()  # wrong
        return mean - scores.mean_pos(pos)
