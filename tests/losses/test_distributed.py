"""Two processes with gathered negatives train like one process with the whole batch."""

from pathlib import Path

import pytest
import torch
from torch.multiprocessing.spawn import spawn

from contrastbench.losses.distributed import gather
from contrastbench.losses.laws.random_contrasts import random_views
from two_processes import NAMES, PAIRS, WORLD, Gradients, encoder, gradients, worker


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[Gradients]:
    folder: Path = tmp_path_factory.mktemp("gloo")
    spawn(worker, args=(str(folder),), nprocs=WORLD)  # type: ignore[no-untyped-call]
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.fixture(scope="module")
def one_process() -> Gradients:
    return gradients(encoder(), random_views(0, 6))


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_that_of_the_concatenated_batch(
    name: str, two_processes: list[Gradients], one_process: Gradients
) -> None:
    for pair in PAIRS:
        for rank in range(WORLD):
            torch.testing.assert_close(
                two_processes[rank][name, pair], one_process[name, pair], rtol=1e-12, atol=1e-12
            )
        assert any(g.abs().max() > 1e-3 for g in one_process[name, pair])


def test_gather_alone_is_the_identity() -> None:
    z = torch.eye(3)
    assert gather(z) is z
