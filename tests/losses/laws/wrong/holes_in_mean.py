from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """The mean over keys includes the holes."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        return scores.neg.mean(dim=1) - scores.mean_pos(scores.pos)  # wrong
