"""Random batches on which two losses are compared."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

DIM = 256  # more than there are embeddings, so that each pair's gradient can be told
BATCH_SIZES = (4, 16, 64)  # samples of a batch
DIRECTIONS = 3  # that samples share, so that some negatives are hard
COPY_NOISE = 0.02  # noise between a sample and its near copy


@dataclass(frozen=True)
class Batch:
    """Two views of the same samples, with the class of each sample."""

    z1: Tensor  # (N, D)
    z2: Tensor  # (N, D)
    labels: Tensor  # (N,)

    @property
    def views(self) -> Tensor:
        """Return (2N, D) the first view's rows, then the second's."""
        return torch.cat([self.z1, self.z2])

    def leaves(self, dtype: torch.dtype) -> "Batch":
        """Return the batch in that dtype, as leaves that get gradients."""
        z1, z2 = (z.to(dtype).requires_grad_() for z in (self.z1.clone(), self.z2.clone()))
        return Batch(z1, z2, self.labels)


def random_batch(size: int, seed: int, equal_copy: bool = False) -> Batch:
    """Draw a batch with hard and easy negatives, rows of several lengths, and a copied sample.

    Args:
        size: number of samples.
        seed: of the draw.
        equal_copy: the last sample is equal to the first, not only near it.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    shared = normal(DIRECTIONS, DIM)[torch.arange(size) % DIRECTIONS]

    shares = partial(torch.rand, size, 1, dtype=torch.float64, generator=generator)
    samples = shared * shares() + normal(size, DIM)
    views = [samples + 0.5 * normal(size, DIM) for _ in range(2)]
    for view in views:
        view[-1] = view[0] + COPY_NOISE * normal(DIM)
        view *= 0.5 + shares()
        if equal_copy:  # to the bit: a distance of rounding errors has a gradient of any direction
            view[-1] = view[0]
    return Batch(views[0], views[1], torch.arange(size) % max(2, size // 2))


def batches(size: int) -> list[Batch]:
    """Return the batches of that size: two with a near copy, one with an equal copy."""
    return [random_batch(size, 0), random_batch(size, 1), random_batch(size, 2, equal_copy=True)]
