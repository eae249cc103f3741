"""Processes that share a batch have the loss and the gradients of one process with all of it."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from contrastbench.distributed import ProcessLost, average_gradients, gather, process_lost, sharing
from processes import in_processes
from shared_losses import LIGHTLY, NAMES, PACKAGED, gradients, shown


def test_every_loss_and_every_pairing_in_three_processes(tmp_path: Path) -> None:
    names = [*NAMES, *PACKAGED]
    whole, wrong = gradients(names), []
    for found in in_processes(3, gradients, tmp_path / "work", names):
        assert found.keys() == whole.keys()
        for case, expected in whole.items():
            assert any(g.abs().max() > 1e-3 for g in expected[1:])
            for a, b in zip(found[case], expected, strict=True):
                if not torch.allclose(a, b, rtol=1e-12, atol=1e-12):
                    wrong.append((*case, (a - b).abs().max().item()))
    assert wrong == []


@pytest.mark.filterwarnings("ignore")  # lightly's own
def test_losses_of_lightly_in_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("lightly.loss", reason='pip install "[perf]"')
    names = [*LIGHTLY, f"{shown('lejepa.py', tmp_path)}:LeJEPA"]
    whole = gradients(names)
    for found in in_processes(2, gradients, tmp_path / "work", names):
        for case, expected in whole.items():
            assert expected[1].abs().max() > 1e-3
            for a, b in zip(found[case], expected, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_alone_nothing_changes() -> None:
    z = torch.eye(3)
    with sharing():
        assert gather(z, 3) is z
        average_gradients([z, None])
    assert torch.equal(z, torch.eye(3))


def test_what_goes_wrong_between_processes_has_one_name() -> None:
    with pytest.raises(ProcessLost, match="has ended"), process_lost():
        raise dist.DistNetworkError("connection reset")
    with pytest.raises(torch.OutOfMemoryError), process_lost():
        raise torch.OutOfMemoryError("this process's own")
