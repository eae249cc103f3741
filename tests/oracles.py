"""Losses as loops, straight from the papers: slow, plain, and the judge of the real ones."""

import math

import torch
from torch import Tensor

from contrastbench.losses import Contrast


def negatives(contrast: Contrast, i: int) -> list[Tensor]:
    """Cosines of anchor i with its negatives."""
    return [
        contrast.anchor[i] @ key
        for key, key_id in zip(contrast.keys, contrast.key_id.tolist(), strict=True)
        if key_id != int(contrast.anchor_id[i])
    ]


def denominator(contrast: Contrast, positive: Tensor, terms: list[Tensor]) -> Tensor:
    """The positive's term, where the pairing has it, and the negatives' terms."""
    total = torch.stack(terms).sum()
    if contrast.mean_over_negatives:
        total = total / len(terms)
    return total + positive if contrast.positive_in_denominator else total


def infonce(contrast: Contrast, temperature: float) -> Tensor:
    values = []
    for i, anchor in enumerate(contrast.anchor):
        for p in contrast.positive[i]:
            pos = torch.exp(anchor @ p / temperature)
            neg = [torch.exp(s / temperature) for s in negatives(contrast, i)]
            values.append(-torch.log(pos / denominator(contrast, pos, neg)))
    return torch.stack(values).mean()


def adnce(contrast: Contrast, temperature: float, mu: float, sigma: float, variant: str = "official_code") -> Tensor:
    values = []
    for i, anchor in enumerate(contrast.anchor):
        scores = negatives(contrast, i)
        arguments = scores if variant == "official_code" else [torch.exp(s / temperature) for s in scores]
        weights = [
            1 / (sigma * math.sqrt(2 * math.pi)) * math.exp(-0.5 * ((x.item() - mu) / sigma) ** 2) for x in arguments
        ]
        mean = sum(weights) / len(weights)
        for p in contrast.positive[i]:
            pos = torch.exp(anchor @ p / temperature)
            neg = [w / mean * torch.exp(s / temperature) for w, s in zip(weights, scores, strict=True)]
            values.append(-torch.log(pos / denominator(contrast, pos, neg)))
    return torch.stack(values).mean()


ORACLES = {"infonce": infonce, "adnce": adnce}
