from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """More negatives than a batch may have."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        neg = scores.neg.topk(10, dim=1).values / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(scores.pos / self.temperature, neg))
