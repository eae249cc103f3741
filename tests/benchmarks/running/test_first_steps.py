"""A training forecast from its first steps: how many are taken, what is made of their times."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import first_steps, runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.training import Run
from contrastbench.domains.graph import GraphRecipe
from contrastbench.errors import UserError
from contrastbench.losses.library.infonce import InfoNCE
from contrastbench.losses.spec import LossSpec
from stub_domain import Stub


def stub(epochs: int) -> Stub:
    """Return a domain with two steps an epoch."""
    return Stub("motifs", GraphRecipe(epochs=epochs), 0, None, torch.device("cpu"))


@pytest.mark.parametrize(
    ("epochs", "times", "seconds"),
    [
        (50, [7, 107, 108, 110, 116], 2 * 100),  # 100 to warm up; 1, 2 and 6
        (2, [0, 9, 12, 15, 18], 3 * 4),
        (1, [0, 9, 11], 2 * 2),  # 9 to warm up
    ],
)
def test_it_is_the_median_of_three_steps_times_their_number(
    epochs: int, times: list[float], seconds: float
) -> None:
    clock = iter(times)
    found = first_steps.forecast(stub(epochs), InfoNCE(), lambda: next(clock))
    assert (found["seconds"], found["steps"]) == (seconds, 2 * epochs)
    assert next(clock, "asked for all") == "asked for all"


class OneStep(Stub):
    def steps(self) -> int:
        return 1

    def batches(self, epoch: int) -> Iterator[torch.Tensor]:
        yield torch.eye(4)


def test_a_step_that_warms_up_counts_where_there_is_no_other() -> None:
    clock = iter([0.0, 9.0])
    domain = OneStep("motifs", GraphRecipe(epochs=1), 0, None, torch.device("cpu"))
    assert first_steps.forecast(domain, InfoNCE(), lambda: next(clock))["seconds"] == 9.0


def test_four_whole_steps_are_taken_and_generators_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    updates, update = list[float](), Run.update
    monkeypatch.setattr(
        Run, "update", lambda run, value: (updates.append(value.item()), update(run, value))[1]
    )
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    found = first_steps.forecast(stub(50), InfoNCE())
    assert len(set(updates)) == 4, "each from other weights"
    assert found["peak_memory_mib"] > 1
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]


TINY = {"epochs": 2, "limit": 60, "folds": 3}


def test_a_cell_is_measured_and_nothing_is_written(tmp_path: Path) -> None:
    work = Experiment("graph", "motifs", LossSpec("adnce"), TINY)
    found = runner.measure_steps(work, 0, Options(tmp_path, device="cpu"))
    assert (found["status"], found["steps"]) == ("ok", 2)
    assert found["seconds"] > 0
    assert not list(tmp_path.iterdir())


def test_data_that_are_missing_are_refused(tmp_path: Path) -> None:
    work = Experiment("graph", "DD", LossSpec("adnce"), TINY)
    with pytest.raises(UserError):
        runner.measure_steps(work, 0, Options(tmp_path, tmp_path, device="cpu"))
