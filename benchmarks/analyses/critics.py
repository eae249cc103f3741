"""Critics: networks that score every x of a batch with every y, without a bound."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrastbench.losses.base import Scores

HIDDEN, CRITIC_DIM = 256, 32
CRITIC_BLOCK = 8  # of x at once: their hidden layer stays in a CPU's cache


@dataclass(frozen=True)
class CriticScores(Scores):
    """Scores of any size, with no holes: all keys that are here are negatives."""

    @property
    def hole(self) -> Tensor:
        """(a, K) nowhere True."""
        return torch.zeros_like(self.neg, dtype=torch.bool)


class Joint(nn.Module):
    """One network for the pair: (x, y) to 256 to 1, as RényiCL's appendix C.2 has it.

    The hidden layer is linear in x and y, so each is multiplied once, not once for each pair.
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.of_x = nn.Linear(dimensions, HIDDEN)
        self.of_y = nn.Linear(dimensions, HIDDEN, bias=False)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(n, n) scores of each x with each y."""
        of_y = self.of_y(y)
        rows = (part.unsqueeze(1) + of_y for part in self.of_x(x).split(CRITIC_BLOCK))
        return torch.cat([self.out(hidden.relu_()).squeeze(-1) for hidden in rows])


class Separable(nn.Module):
    """A network for each side, d to 256 to 32, and their inner product (Poole et al. 2019)."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.of_x, self.of_y = (
            nn.Sequential(nn.Linear(dimensions, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CRITIC_DIM))
            for _ in range(2)
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(n, n) scores of each x with each y."""
        scores: Tensor = self.of_x(x) @ self.of_y(y).T
        return scores


CRITICS: dict[str, type[nn.Module]] = {"joint": Joint, "separable": Separable}


def as_scores(critic: Tensor) -> Scores:
    """Return an (n, n) matrix as scores: the diagonal holds the positives, the rest negatives."""
    n = len(critic)
    # behind the first number every n + 1st is of the diagonal
    apart = critic.flatten()[1:].view(n - 1, n + 1)[:, :-1].reshape(n, n - 1)
    return CriticScores(critic.diagonal().unsqueeze(1), apart, critic.new_full((n, 1), n - 1))
