from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """Scores times the temperature."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        pos, neg = scores.pos * self.temperature, scores.neg * self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))
