"""The table of times and memory: its form, and what a step holds."""

import re
from subprocess import CompletedProcess
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.losses import blocks
from contrastbench.losses.registry import OURS


def test_table_has_a_cell_for_every_loss_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = perf_losses.measured_entry("infonce", 16)
    assert re.fullmatch(r"\d+\.\d\dx \d+ MB", measured)
    monkeypatch.setattr(perf_losses, "measured_entry", lambda *words: f"{words[0]} {words[1]}")
    unit, head, *lines = perf_losses.report(["dcl_w", "jsd"], sizes=(16, 32))
    assert "1x is" in unit
    assert head == "| loss | 2N = 16 | 2N = 32 |\n| --- | ---: | ---: |"
    assert lines == [
        "| dcl_w | dcl_w 16 | dcl_w 32 |",
        "| dcl_w of lightly | dcl_w of lightly 16 | dcl_w of lightly 32 |",
        "| jsd | jsd 16 | jsd 32 |",
    ]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = CompletedProcess([], 1, "", "UserError: it is not installed: pip install lightly")
    monkeypatch.setattr(perf_losses.subprocess, "run", lambda *_, **__: missing)
    assert perf_losses.measured_entry("dcl_w of lightly", 16) == "not installed"


@pytest.mark.parametrize("name", OURS)
def test_no_loss_holds_all_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is linear: no tensor that a step makes has as many numbers as all scores."""
    monkeypatch.setattr(blocks, "CPU_WHOLE", 0)
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
