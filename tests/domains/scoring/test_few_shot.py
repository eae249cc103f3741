"""Episodes of few shots, and the transfer of features."""

import pytest
import torch

from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.few_shot import WAYS, few_shot
from contrastbench.domains.scoring.logistic import TRANSFER_GRID, per_class, transfer_accuracies
from contrastbench.losses import UserError


def rows(noise: float, classes: int = 7, each: int = 12, seed: int = 0) -> Labelled:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(classes).repeat_interleave(each)
    x = 10 * torch.eye(classes)[y] + noise * torch.randn(len(y), classes, generator=generator)
    return Labelled(x, y)


def test_classes_that_lie_apart_are_told_by_one_shot() -> None:
    found = few_shot(rows(0.1), episodes=10)
    assert found == {
        **{"5-way_1-shot": 100, "5-way_1-shot_interval": 0},
        **{"5-way_5-shot": 100, "5-way_5-shot_interval": 0},
    }


def test_more_shots_help_and_the_seed_decides_the_episodes() -> None:
    data = rows(8.0)
    found = few_shot(data, seed=1, episodes=25)
    assert found == few_shot(data, seed=1, episodes=25) != few_shot(data, seed=2, episodes=25)
    assert 100 / WAYS < found["5-way_1-shot"] + 5 < found["5-way_5-shot"]
    assert 0.5 < found["5-way_1-shot_interval"] < 6


def test_too_few_classes_or_rows_are_one_line() -> None:
    for data in (rows(1, classes=4), rows(1, each=5)):
        with pytest.raises(UserError, match=r"5 classes with . samples each are too few"):
            few_shot(data, episodes=2)


def test_the_accuracy_per_class_weighs_classes_alike() -> None:
    truth = torch.tensor([0, 0, 0, 1])
    assert per_class(torch.tensor([0, 0, 0, 0]), truth) == 50
    assert per_class(torch.tensor([0, 0, 1, 1]), truth) == pytest.approx(100 * (2 / 3 + 1) / 2)


def test_transfer_takes_one_of_45_and_fits_again_with_validation_rows() -> None:
    assert (len(TRANSFER_GRID), TRANSFER_GRID[0]) == (45, 1e-6)
    assert TRANSFER_GRID[-1] == pytest.approx(1e5)
    train, validation, test = (rows(2.0, classes=3, seed=k) for k in range(3))
    found = transfer_accuracies(train, validation, test)
    assert found["C"] in TRANSFER_GRID
    assert found["accuracy"] == pytest.approx(found["per_class_accuracy"])
    assert found["accuracy"] > 90
