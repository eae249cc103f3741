"""A loss that draws random numbers, as a user would write it."""

import torch
from torch import Tensor

from contrastbench.losses import Scores
from contrastbench.losses.library.infonce import InfoNCE


class Noise(InfoNCE):
    """InfoNCE with noise on its scores."""

    def terms(self, scores: Scores) -> Tensor:
        return super().terms(scores) * (1 + 0.1 * torch.rand_like(scores.pos[:, 0]))
