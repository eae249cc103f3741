"""The table of times and memory: its form, and that peers compute the same loss."""

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.benchmarks.perf.peers import PEER_CLASSES, PEER_DIM, PEERS
from contrastbench.losses import blocks, get_loss, same_class
from contrastbench.losses.registry import OURS


def test_table_has_a_cell_for_every_loss_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = perf_losses.measured_entry("infonce", 16)
    assert re.fullmatch(r"\d+\.\d\dx \d+ MB", measured)
    monkeypatch.setattr(perf_losses, "measured_entry", lambda *words: f"{words[0]} {words[1]}")
    head, _, *lines = perf_losses.report(["dcl_w", "jsd"], sizes=(16, 32))
    assert head == "| loss | 2N = 16 | 2N = 32 |"
    assert lines == [
        "| dcl_w | dcl_w 16 | dcl_w 32 |",
        "| dcl_w of lightly | dcl_w of lightly 16 | dcl_w of lightly 32 |",
        "| jsd | jsd 16 | jsd 32 |",
    ]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(PEERS["dcl_w of lightly"], module="no_such_library.loss")
    monkeypatch.setitem(perf_losses.PEERS, "dcl_w of lightly", missing)
    assert perf_losses.measured_entry("dcl_w of lightly", 16) == "not installed"


@pytest.mark.parametrize("name", OURS)
def test_no_loss_holds_all_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is linear: no tensor that a step makes has as many numbers as all scores."""
    monkeypatch.setattr(blocks, "CPU_BLOCK", 2**14)
    monkeypatch.setattr(blocks, "CPU_TILE", 2**6)
    made = Sizes()
    with made:
        perf_losses.train_step(name, 512)()
    assert made.largest < 512**2 / 2


class Sizes(TorchDispatchMode):
    """Keeps the number of numbers of the largest tensor that an operation has made."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // 4)
        return made


def test_a_cell_over_its_memory_says_so() -> None:
    assert perf_losses.measured_entry("mean_variance", 4096, gigabytes=0.05) == "over 0.05 GB"


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("row", PEERS)
def test_peers_compute_our_loss(row: str) -> None:
    """Lightly before 1.5.21 had a DCL with two logarithms where the paper has that of one sum."""
    name, peer = row.partition(" of ")[0], PEERS[row]
    pytest.importorskip(peer.module, reason='pip install "[perf]"')
    torch.manual_seed(0)
    views, classes = list(torch.randn(2, 16, PEER_DIM).unbind()), torch.arange(16)
    theirs, ours = peer.make(), get_loss(name)
    ours.prepare(PEER_CLASSES, PEER_DIM)
    for copy, own in zip(theirs.parameters(), ours.parameters(), strict=True):
        copy.data = own.data if own.shape == copy.shape else own.data.T
    torch.testing.assert_close(
        peer.value(theirs, views, classes), ours(same_class(*views, classes))
    )
