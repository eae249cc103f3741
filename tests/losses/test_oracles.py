"""Every loss against its loop from the paper, values and gradients, and against its limits."""

import pytest
import torch

from contrastbench.losses import both_views, get_loss, other_view, query_key, whole_row
from oracles import ORACLES

CASES = {
    "infonce": [{"temperature": t} for t in (0.05, 0.5, 1.0)],
    "adnce": [
        {"temperature": t, "mu": mu, "sigma": sigma, "variant": variant}
        for t, mu, sigma in [(0.05, 1.5, 1.0), (0.4, 0.7, 0.5), (0.2, 0.2, 0.3)]
        for variant in ("official_code", "paper")
        if variant == "official_code" or t >= 0.4
    ],
}
PAIRINGS = {
    "both_views": both_views,
    "further_positives": lambda z1, z2: both_views(z1, z2, positives=[z2.roll(1, 1), z1 + z2]),
    "other_view": other_view,
    "sum_over_negatives": lambda z1, z2: other_view(z1, z2, mean_over_negatives=False),
    "whole_row": whole_row,
    "query_key": lambda z1, z2: query_key([z1, z1 + z2], z2),
}


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize(("name", "params"), [(name, params) for name, cases in CASES.items() for params in cases])
def test_value_and_gradient_equal_the_papers_loop(name: str, params: dict, pairing: str) -> None:
    generator = torch.Generator().manual_seed(3)
    views = [torch.randn(5, 4, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(2)]
    contrast = PAIRINGS[pairing](*views)
    values = [get_loss(name, **params)(contrast), ORACLES[name](contrast, **params)]
    assert values[0].item() == pytest.approx(values[1].item(), abs=1e-10, rel=0)
    gradients = [torch.cat(torch.autograd.grad(v, views, retain_graph=True)) for v in values]
    assert torch.allclose(*gradients, atol=1e-10, rtol=0)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_adnce_with_wide_weights_is_infonce(pairing: str) -> None:
    z = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    contrast = PAIRINGS[pairing](*z)
    wide, plain = get_loss("adnce", temperature=0.2, sigma=1e6), get_loss("infonce", temperature=0.2)
    assert wide(contrast).item() == pytest.approx(plain(contrast).item(), abs=1e-10)
    assert get_loss("adnce", temperature=0.2, sigma=0.3)(contrast).item() != pytest.approx(plain(contrast).item())
