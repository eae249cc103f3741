from contrastbench.losses import ScoreLoss, Scores


class Mine(ScoreLoss):
    """The temperature is 0 by default."""

    def __init__(self, temperature: float = 0) -> None:
        super().__init__()
        self.temperature = temperature

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature  # wrong
        return -scores.mean_pos(scores.log_share(pos, neg))
