"""Nested choices: each fold by its own training part, and pure noise gives no optimism."""

from pathlib import Path

import numpy as np
import pytest

from contrastbench.benchmarks.records import nested
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from made_records import made

TRIALS = [Experiment("graph", "MUTAG", LossSpec("infonce", {"temperature": t}), {}) for t in (1, 2)]
FOLDS = 10


def add(results: Path, trial: int, seed: int, folds: list, inner: list, **change: object) -> None:
    details = {"folds": folds, "inner": inner}
    made(results, TRIALS[trial], seed, **{"details": details, "seconds": 2.0, **change})


def test_each_fold_has_the_trial_that_its_training_part_prefers(tmp_path: Path) -> None:
    first = {"folds": [10.0, 20.0, 30.0], "inner": [70.0, 60.0, 80.0], "loss_by_epoch": [1.0]}
    add(tmp_path, 0, 0, [], [], details=first)
    add(tmp_path, 1, 0, [90.0, 40.0, 50.0], [60.0, 65.0, 80.0])
    add(tmp_path, 0, 1, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])  # its other trial is not done
    (by_seed,) = nested.chosen_by_data(TRIALS, tmp_path).values()
    record = by_seed.pop(0)
    assert by_seed == {}
    assert "loss_by_epoch" not in record["details"], "it is of one setting alone"
    assert record["details"]["folds"] == [10.0, 40.0, 30.0]
    assert record["details"]["inner"] == [70.0, 65.0, 80.0]
    assert record["metrics"]["accuracy"] == pytest.approx(80 / 3)
    assert record["metrics"]["accuracy_std_over_folds"] == pytest.approx(np.std([10, 40, 30]))
    assert record["seconds"] == 4.0, "all trials are what choosing costs"
    counted = nested.frequencies([record])
    assert counted == [(0, 2), (1, 1)]
    assert nested.chosen_by_data(TRIALS, tmp_path, but=[0]) == {}


def test_a_trial_that_diverged_is_not_chosen(tmp_path: Path) -> None:
    add(tmp_path, 0, 0, [10.0, 20.0], [0.0, 0.0])
    add(tmp_path, 1, 0, [], [], status="diverged")
    (by_seed,) = nested.chosen_by_data(TRIALS, tmp_path).values()
    assert by_seed[0]["details"]["folds"] == [10.0, 20.0]
    for trial in (0, 1):
        add(tmp_path / "none", trial, 0, [], [], status="diverged")
    assert nested.chosen_by_data(TRIALS, tmp_path / "none") == {}


def test_trials_on_different_data_do_not_meet(tmp_path: Path) -> None:
    add(tmp_path, 0, 0, [10.0, 20.0], [1.0, 1.0])
    add(tmp_path, 1, 0, [10.0, 20.0], [1.0, 1.0], data_hash="1" * 64)
    assert nested.chosen_by_data(TRIALS, tmp_path) == {}


@pytest.mark.parametrize(("mib", "known"), [((None, None), None), ((None, 5.0), 5.0)])
def test_memory_may_be_unknown(mib: tuple, known: float | None, tmp_path: Path) -> None:
    for trial in (0, 1):
        add(tmp_path, trial, 0, [10.0, 20.0], [1.0, 1.0], peak_memory_mib=mib[trial])
    (by_seed,) = nested.chosen_by_data(TRIALS, tmp_path).values()
    assert by_seed[0]["peak_memory_mib"] == known


def test_a_record_without_inner_scores_is_named(tmp_path: Path) -> None:
    for trial in (0, 1):
        add(tmp_path, trial, 3, [10.0, 20.0], [])
    with pytest.raises(UserError, match=r"^[0-9a-f]{16}-seed3 has no inner scores, .*: remove"):
        nested.chosen_by_data(TRIALS, tmp_path)


def by_chance(rng: np.random.Generator, trials: int, graphs: int) -> tuple[np.ndarray, np.ndarray]:
    """Fold accuracies and inner accuracies of trials that are right by a coin for each graph.

    Hyperparameters that are pure noise: every trial is 50 % on graphs that were not used to choose.
    """
    right = 100.0 * rng.integers(0, 2, (trials, graphs))
    parts = np.array_split(rng.permutation(graphs), FOLDS)
    folds = np.stack([right[:, part].mean(axis=1) for part in parts], axis=1)
    inner = np.stack([np.delete(right, part, axis=1).mean(axis=1) for part in parts], axis=1)
    return folds, inner


def test_pure_noise_to_choose_from_gives_no_optimism() -> None:
    """The mean is within three of its standard errors of 50; one choice for all folds is not."""
    rng = np.random.default_rng(0)
    chosen, at_once = [], []
    for _ in range(400):
        folds, inner = by_chance(rng, trials=20, graphs=200)
        best = nested.best_by_fold(inner.tolist())
        chosen.append(folds[best, range(FOLDS)].mean())
        at_once.append(folds[inner.mean(axis=1).argmax()].mean())
    means = np.mean(chosen), np.mean(at_once)
    errors = np.std(chosen, ddof=1) / 20, np.std(at_once, ddof=1) / 20
    assert abs(means[0] - 50) < 3 * errors[0], (means, errors)
    assert means[1] - 50 > 30 * errors[1], (
        "the rule that the nested one replaces: 6 points too good"
    )
    assert 5 < means[1] - 50 < 8
