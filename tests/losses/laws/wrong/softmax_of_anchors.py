from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """A softmax over anchors, of which `terms` sees a block."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        weight = scores.pos.detach().softmax(dim=0)  # wrong
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(weight * scores.log_share(pos, neg))
