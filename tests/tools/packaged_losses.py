"""Losses of two views as a package has them: plain classes and functions of (z1, z2)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, relu

NUMBER = 3


class Vicreg(nn.Module):
    """A loss of coordinates."""

    def __init__(self, weight: float = 25.0, gather_distributed: bool = False, eps: float = 1e-4):
        super().__init__()
        self.weight, self.gather_distributed, self.eps = weight, gather_distributed, eps

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        spread = sum(relu(1 - (z.var(dim=0) + self.eps).sqrt()).mean() for z in (z1, z2))
        return self.weight * mse_loss(z1, z2) + spread


class Learned(nn.Module):
    """A loss with a parameter of its own."""

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return (self.scale * z1 - z2).square().mean() + z1.var(dim=0).mean()


def distance(z1: Tensor, z2: Tensor, power: float = 2.0, kind: str = "mean") -> Tensor:
    """A function of two views."""
    return (z1 - z2).abs().pow(power).mean() + z1.mean(dim=0).square().sum()


class Detached(nn.Module):
    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return mse_loss(z1.detach(), z2.detach())


class InPlace(nn.Module):
    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        with torch.no_grad():
            z1 += 1
        return mse_loss(z1, z2)


class OnHost(nn.Module):
    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return mse_loss(z1 * torch.ones(z1.shape[1], dtype=z1.dtype), z2)


class Labels(nn.Module):
    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        return embeddings.mean()


class Stacked(nn.Module):
    def forward(self, *, local_proj: Tensor, global_proj: Tensor) -> Tensor:
        return (local_proj - global_proj).mean()
