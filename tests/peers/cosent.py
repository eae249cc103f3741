"""CoSENT of the scores of all pairs of two views, where a pair of one sample is the more alike."""

import torch
import torch.nn.functional as F


def formula(z1, z2, scale=20.0):
    """Return log(1 + sum exp(scale (s(k,l) - s(i,j)))), as (i,j) is more alike than (k,l)."""
    s = scale * F.normalize(z1) @ F.normalize(z2).T
    own = torch.eye(len(s), dtype=torch.bool)
    differences = s[~own].unsqueeze(0) - s[own].unsqueeze(1)
    return torch.cat([s.new_zeros(1), differences.flatten()]).logsumexp(dim=0)


def inverted(z1, z2, scale=20.0):
    """Return the same with s(i,j) - s(k,l)."""
    return formula(z1, -z2, scale)
