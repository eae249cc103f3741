"""The table of times and memory: its form, and that peers compute the same loss."""

import re

import pytest
import torch

from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.losses import both_views, get_loss


def test_table_has_a_cell_for_every_loss_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(perf_losses.PEERS, "lightly", "no_such_library")
    assert perf_losses.cell("lightly", 16) == "not installed"
    measured = perf_losses.cell("infonce", 16)
    assert re.fullmatch(r"\d+\.\d\dx \d+ MB", measured)
    monkeypatch.setattr(perf_losses, "cell", lambda *words: f"{words[0]} {words[1]}")
    head, _, *lines = perf_losses.report(["infonce", "lightly"], sizes=(16, 32))
    assert head == "| loss | 2N = 16 | 2N = 32 |"
    assert lines == [
        "| infonce | infonce 16 | infonce 32 |",
        "| lightly | lightly 16 | lightly 32 |",
    ]


def test_a_cell_over_its_memory_says_so() -> None:
    assert perf_losses.cell("mean_variance", 4096, gigabytes=0.05) == "over 0.05 GB"


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("peer", perf_losses.PEERS)
def test_peers_compute_our_infonce(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(perf_losses.PEERS[peer])
    found: list[torch.Tensor] = []
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: found.append(loss))
    perf_losses.train_step(peer, 32)()
    views = torch.randn(2, 16, perf_losses.DIM, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        found[0], get_loss("infonce", temperature=0.5)(both_views(views[0], views[1]))
    )


@pytest.mark.filterwarnings("ignore")  # lightly's own
def test_lightlys_dcl_is_our_decoupled() -> None:
    """Before 1.5.21 it summed two logarithms where the paper has that of one sum."""
    losses = pytest.importorskip("lightly.loss", reason='pip install "[perf]"')
    views = torch.randn(2, 16, perf_losses.DIM, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        losses.DCLLoss(temperature=0.5)(*views),
        get_loss("decoupled", temperature=0.5)(both_views(*views)),
    )
