"""Classifiers on frozen embeddings against scikit-learn and against the definition."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from contrastbench.domains.base import generator
from contrastbench.domains.scoring import classifiers
from contrastbench.domains.scoring.classifiers import (
    C_GRID,
    CLASSIFIERS,
    Labelled,
    accuracy,
    linear,
    logistic,
    neighbours,
    pseudo_inverse,
    regularised,
)

LOADERS = [load_iris, load_wine, load_digits]


def parts(load) -> tuple[Labelled, Labelled]:
    x, y = load(return_X_y=True)
    x, x_held, y, y_held = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)
    return tuple(
        Labelled(torch.from_numpy(a).float(), torch.from_numpy(b).long())
        for a, b in ((x, y), (x_held, y_held))
    )


@pytest.mark.parametrize("load", LOADERS)
def test_the_pseudo_inverse_is_linear_regression_on_classes(load) -> None:
    train, held = parts(load)
    model = make_pipeline(StandardScaler(), LinearRegression())
    model.fit(train.x.double().numpy(), np.eye(int(train.y.max()) + 1)[train.y])
    expected = model.predict(held.x.double().numpy()).argmax(axis=1)
    assert pseudo_inverse(train).predict(held.x).tolist() == expected.tolist()


def test_the_pseudo_inverse_stands_columns_that_repeat_and_more_columns_than_rows() -> None:
    train, held = parts(load_wine)
    expected = pseudo_inverse(train).predict(held.x)
    twice = Labelled(torch.cat([train.x, train.x, torch.ones(len(train.y), 2)], dim=1), train.y)
    rows = torch.cat([held.x, held.x, torch.ones(len(held.y), 2)], dim=1)
    assert torch.equal(pseudo_inverse(twice).predict(rows), expected)
    few = Labelled(train.x[:9], train.y[:9])
    assert accuracy(pseudo_inverse(few), few) == 100.0


@pytest.mark.parametrize("load", LOADERS)
def test_logistic_regression_is_scikit_learns(load) -> None:
    train, held = parts(load)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(
        train.x.numpy(), train.y.numpy()
    )
    ours = logistic(train)
    assert np.mean(ours.predict(held.x).numpy() == model.predict(held.x.numpy())) > 0.99
    assert 0 < ours.details["iterations"] <= 300


def by_hand(train: Labelled, rows: torch.Tensor, rate: float, seed: int) -> np.ndarray:
    """Softmax regression by SGD with momentum as in the textbook, in numpy."""
    x, mean, std = (
        train.x.double().numpy(),
        train.x.double().mean(0).numpy(),
        train.x.double().std(0, False).numpy(),
    )
    scale = math.sqrt(classifiers.MEAN_SQUARE / x.shape[1]) / np.where(std > 0, std, np.inf)
    x, targets = (x - mean) * scale, np.eye(int(train.y.max()) + 1)[train.y]
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    weight = velocity = np.zeros((x.shape[1], targets.shape[1]))
    step, steps = 0, classifiers.EPOCHS * math.ceil(len(x) / classifiers.BATCH)
    for epoch in range(classifiers.EPOCHS):
        order = torch.randperm(
            len(x), generator=generator(torch.device("cpu"), seed, epoch)
        ).numpy()
        for start in range(0, len(x), classifiers.BATCH):
            part = order[start : start + classifiers.BATCH]
            score = np.exp(x[part] @ weight)
            gradient = (
                x[part].T @ (score / score.sum(axis=1, keepdims=True) - targets[part]) / len(part)
            )
            velocity = 0.9 * velocity + gradient
            weight = weight - rate * 0.5 * (1 + math.cos(math.pi * step / steps)) * velocity
            step += 1
    rows = np.concatenate([(rows.double().numpy() - mean) * scale, np.ones((len(rows), 1))], axis=1)
    return (rows @ weight).argmax(axis=1)


@pytest.mark.parametrize("load", [load_wine, load_digits])
def test_the_linear_classifier_is_sgd_by_hand_at_the_rate_that_validation_prefers(load) -> None:
    train, held = parts(load)
    ours = linear(train, held, seed=4)
    expected = {rate: by_hand(train, held.x, rate, 4) for rate in classifiers.RATES}
    scores = [100 * np.mean(expected[rate] == held.y.numpy()) for rate in classifiers.RATES]
    assert ours.details["validation_by_lr"] == pytest.approx(scores, abs=0.5)
    assert ours.details["lr"] == classifiers.RATES[int(np.argmax(ours.details["validation_by_lr"]))]
    assert np.mean(ours.predict(held.x).numpy() == expected[ours.details["lr"]]) > 0.99


@pytest.mark.parametrize(("right", "best"), [([0], 0), ([1], 1), ([2], 2), ([1, 2], 1), ([], 0)])
def test_the_best_rate_is_taken_whichever_it_is(
    right: list[int], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads that always say class 1 are right, those that always say class 0 wrong."""
    heads = [torch.nn.Linear(2, 2) for _ in classifiers.RATES]
    for k, head in enumerate(heads):
        torch.nn.init.zeros_(head.weight)
        head.bias.data = torch.tensor([0.0, 1.0]) if k in right else torch.tensor([1.0, 0.0])
    monkeypatch.setattr(classifiers, "train_heads", lambda train, seed: heads)
    rows = Labelled(torch.randn(6, 2), torch.ones(6, dtype=torch.long))
    ours = linear(rows, rows)
    assert ours.details == {
        "lr": (1.0, 3.0, 5.0)[best],
        "validation_by_lr": [100.0 * (k in right) for k in range(3)],
    }
    assert ours.predict(rows.x).tolist() == [int(best in right)] * 6


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_same_seed_gives_the_same_classes_and_all_beat_chance(name: str) -> None:
    train, held = parts(load_wine)
    first, second = (CLASSIFIERS[name](train, held, 1) for _ in range(2))
    assert torch.equal(first.predict(held.x), second.predict(held.x))
    assert accuracy(first, held) > 85


def test_the_scale_of_an_embedding_does_not_matter() -> None:
    train, held = parts(load_wine)
    large, held_large = (Labelled(1e4 * part.x + 3, part.y) for part in (train, held))
    for name in ("linear", "pseudo_inverse", "logistic"):
        a, b = CLASSIFIERS[name](train, held, 0), CLASSIFIERS[name](large, held_large, 0)
        assert (a.predict(held.x) == b.predict(held_large.x)).double().mean() > 0.98


@pytest.mark.parametrize("name", ["linear", "pseudo_inverse", "logistic"])
def test_a_column_that_is_constant_in_training_has_no_say(name: str) -> None:
    train, held = parts(load_wine)
    constant, new = torch.full((len(train.y), 1), 0.3), torch.linspace(-9, 9, len(held.y))[:, None]
    wide = Labelled(torch.cat([train.x, constant], dim=1), train.y)
    held_wide = Labelled(torch.cat([held.x, new], dim=1), held.y)
    assert accuracy(CLASSIFIERS[name](wide, held_wide, 0), held_wide) > 85


@pytest.mark.parametrize("load", LOADERS)
def test_the_regularisation_is_the_one_that_validation_rows_like_best(load) -> None:
    train, held = parts(load)
    ours = regularised(train, held)
    scores = []
    for c in C_GRID:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=300))
        scores.append(
            100 * model.fit(train.x.numpy(), train.y.numpy()).score(held.x.numpy(), held.y.numpy())
        )
    assert ours.details["validation_by_C"] == pytest.approx(scores, abs=150 / len(held.y))
    found = ours.details["validation_by_C"]
    assert ours.details["C"] == C_GRID[found.index(max(found))]
    assert accuracy(ours, held) == max(found)
    assert max(found) > min(found), "the choice matters"


def test_without_validation_rows_nothing_is_chosen() -> None:
    train, held = parts(load_wine)
    ours = regularised(train, None)
    assert torch.equal(ours.predict(held.x), logistic(train).predict(held.x))
    assert ours.details["C"] == 1.0
    assert "validation_by_C" not in ours.details


@pytest.mark.parametrize(
    ("k", "temperature"), [(1, 0.5), (20, 0.1), (50, 0.5), (10_000, 0.07), (50, 0.005)]
)
def test_neighbours_vote_as_in_the_definition(k: int, temperature: float) -> None:
    train, held = parts(load_digits)
    train, held = Labelled(train.x[:100], train.y[:100]), Labelled(held.x[:50], held.y[:50])
    ours = neighbours(train, k, temperature)
    assert ours.details == {"k": min(k, 100)}
    for row, found in zip(held.x.double(), ours.predict(held.x).tolist(), strict=True):
        rows = zip(train.x.double(), train.y.tolist(), strict=True)
        cosines = [(float(row @ x / row.norm() / x.norm()), label) for x, label in rows]
        votes = [0.0] * 10
        for cosine, label in sorted(cosines, reverse=True)[:k]:
            votes[label] += math.exp(cosine / temperature)
        assert found == votes.index(max(votes))
