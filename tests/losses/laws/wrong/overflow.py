from contrastbench.losses import ScoreLoss, Scores
from contrastbench.losses.base import in_range


class Mine(ScoreLoss):
    """Exponentials are taken before the logarithm."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = in_range("temperature", temperature, low=0)

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        share = pos.exp() / (pos.exp() + neg.exp().sum(dim=1, keepdim=True))  # wrong
        return -scores.mean_pos(share.log())
