from contrastbench.losses import ScoreLoss, Scores


class Mine(ScoreLoss):
    """Any value of the parameter is accepted."""

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature  # wrong

    def terms(self, scores: Scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))
