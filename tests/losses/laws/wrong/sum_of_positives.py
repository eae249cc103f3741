from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """Positives are summed up."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        share = scores.log_share(pos, neg).masked_fill(scores.padding, 0)
        return -share.sum(dim=1)  # wrong
