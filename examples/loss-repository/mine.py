"""The loss of this repository."""

from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.ranges import TEMPERATURE, Number, declare


class Mine(ScoreLoss):
    """InfoNCE with a margin on the positive."""

    ranges = declare(temperature=TEMPERATURE, margin=Number(low=0, closed="low", tune=(0, 0.5)))

    def __init__(self, temperature: float = 0.5, margin: float = 0.1) -> None:
        super().__init__()
        self.temperature = self.checked("temperature", temperature)
        self.margin = self.checked("margin", margin)

    def terms(self, scores: Scores):
        pos, neg = (scores.pos - self.margin) / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))
