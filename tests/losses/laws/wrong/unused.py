import torch

from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """A parameter times zero."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)
        self.bias = torch.nn.Parameter(torch.ones(()))

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return 0 * self.bias - scores.mean_pos(scores.log_share(pos, neg))  # wrong
