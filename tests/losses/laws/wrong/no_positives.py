from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """The positives are not used."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        return scores.log_mean_neg(scores.neg / self.temperature)  # wrong
