"""Classifiers on frozen embeddings against scikit-learn and against the definition."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from torch import Tensor

from contrastbench.domains.random import generator
from contrastbench.domains.samples import draw_share
from contrastbench.domains.scoring import linear as probe
from contrastbench.domains.scoring import svm
from contrastbench.domains.scoring.classifiers import (
    Classifier,
    Labelled,
    accuracy,
    accuracy_within,
    neighbours,
    standardiser,
)
from contrastbench.domains.scoring.linear import linear, plain_linear, pseudo_inverse
from contrastbench.domains.scoring.logistic import (
    C_GRID,
    logistic,
    regularisation_path,
    regularised,
)
from contrastbench.domains.scoring.svm import (
    check_folds,
    linear_folds,
    svm_folds,
    svm_part,
)
from contrastbench.domains.tabular.domain import CLASSIFIERS
from contrastbench.losses import UserError

LOADERS = [load_iris, load_wine]


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
    assert pseudo_inverse(train).scores(held.x).argmax(1).tolist() == expected.tolist()


def test_the_pseudo_inverse_stands_columns_that_repeat_and_more_columns_than_rows() -> None:
    train, held = parts(load_wine)
    expected = pseudo_inverse(train).scores(held.x).argmax(1)
    twice = Labelled(torch.cat([train.x, train.x, torch.ones(len(train.y), 2)], dim=1), train.y)
    rows = torch.cat([held.x, held.x, torch.ones(len(held.y), 2)], dim=1)
    assert torch.equal(pseudo_inverse(twice).scores(rows).argmax(1), expected)
    few = Labelled(train.x[:9], train.y[:9])
    assert accuracy(pseudo_inverse(few), few) == 100.0


@pytest.mark.parametrize("load", LOADERS)
def test_logistic_regression_is_scikit_learns(load) -> None:
    train, held = parts(load)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(
        train.x.numpy(), train.y.numpy()
    )
    ours, chances = logistic(train), np.sort(model.predict_proba(held.x.numpy()), axis=1)
    clear = chances[:, -1] - chances[:, -2] > 0.02  # others may fall to either side
    same = ours.scores(held.x).argmax(1).numpy() == model.predict(held.x.numpy())
    assert same[clear].all()
    assert clear.mean() > 0.95
    assert 0 < ours.details["iterations"] <= 300


def scaled(train: Labelled) -> np.ndarray:
    x, mean, std = (
        train.x.double().numpy(),
        train.x.double().mean(0).numpy(),
        train.x.double().std(0, False).numpy(),
    )
    return (x - mean) * math.sqrt(16 / x.shape[1]) / np.where(std > 0, std, np.inf)


def by_hand(
    x: np.ndarray, y: Tensor, seed: int, batch: int, rate: Callable[[float], float]
) -> np.ndarray:
    """Softmax regression by SGD with momentum as in the textbook, in numpy: weights, bias last.

    Over 100 epochs; the rate is that of the epoch, counted in fractions.
    """
    targets = np.eye(int(y.max()) + 1)[y]
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    weight = velocity = np.zeros((x.shape[1], targets.shape[1]))
    step, steps = 0, math.ceil(len(x) / batch)
    for epoch in range(100):
        order = torch.randperm(
            len(x), generator=generator(torch.device("cpu"), seed, epoch)
        ).numpy()
        for start in range(0, len(x), batch):
            part = order[start : start + batch]
            score = np.exp(x[part] @ weight)
            gradient = (
                x[part].T @ (score / score.sum(axis=1, keepdims=True) - targets[part]) / len(part)
            )
            velocity = 0.9 * velocity + gradient
            weight = weight - rate(step / steps) * velocity
            step += 1
    return weight


def check_heads(
    heads: list[torch.nn.Linear],
    x: np.ndarray,
    y: Tensor,
    batch: int,
    share: Callable[[float], float],
) -> None:
    """The head of each rate is that by hand; share is that of the rate in an epoch."""
    for head, rate in zip(heads, probe.RATES, strict=True):
        expected = by_hand(x, y, 4, batch, lambda epoch, rate=rate: rate * share(epoch))
        found = torch.cat([head.weight, head.bias[:, None]], dim=1).T.double().numpy()
        assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def check_choice(ours: Classifier, heads: list[torch.nn.Linear], x: Tensor, held: Labelled) -> None:
    classes = [head(x).argmax(dim=1) for head in heads]
    scores = [100 * (y == held.y).double().mean().item() for y in classes]
    best = scores.index(max(scores))
    assert ours.details["validation_by_lr"] == scores
    assert ours.details["lr"] == probe.RATES[best]
    assert torch.equal(ours.scores(held.x).argmax(1), classes[best])


def test_the_linear_classifier_is_sgd_by_hand_at_the_rate_that_validation_prefers() -> None:
    train, held = parts(load_wine)
    standardise = standardiser(train.x)
    share = math.sqrt(probe.MEAN_SQUARE / train.x.shape[1])
    rows = Labelled(standardise(train.x) * share, train.y)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR
    heads = probe.train_heads(rows, 4, probe.BATCH, cosine)
    check_heads(heads, scaled(train), train.y, 256, lambda e: (1 + math.cos(math.pi * e / 100)) / 2)
    check_choice(linear(train, held, seed=4), heads, standardise(held.x) * share, held)


def test_the_plain_classifier_is_sgd_by_hand_on_the_embeddings_as_they_are() -> None:
    """RényiCL, appendix B.5: rate 1, 3 or 5, 100 epochs; the rest as i-Mix's main_lincls.py."""
    train, held = (Labelled(part.x / part.x.abs().max() + 0.1, part.y) for part in parts(load_wine))
    heads = probe.train_heads(train, 4, 512, probe.steps_down)
    assert probe.RATES == (1.0, 3.0, 5.0)
    drops = (80, 90, 95)
    x = train.x.double().numpy()
    check_heads(heads, x, train.y, 512, lambda e: 0.2 ** sum(e >= drop for drop in drops))
    check_choice(plain_linear(train, held, seed=4), heads, held.x, held)


def test_a_plain_classifier_that_diverges_says_so() -> None:
    rows = Labelled(1e30 * torch.randn(6, 2), torch.tensor([0, 1, 0, 1, 0, 1]))
    with pytest.raises(UserError, match=r"diverged at learning rate 1.*use the classifier linear"):
        plain_linear(rows, rows)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_same_seed_gives_the_same_classes_and_all_beat_chance(name: str) -> None:
    train, held = parts(load_wine)
    standardise = standardiser(train.x)  # which the plain classifier leaves to the embedding
    train, held = (Labelled(standardise(part.x) / 4, part.y) for part in (train, held))
    first, second = (CLASSIFIERS[name](train, held, 1) for _ in range(2))
    assert torch.equal(first.scores(held.x).argmax(1), second.scores(held.x).argmax(1))
    assert accuracy(first, held) > 85


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
    ours, standardise = regularised(train, held), standardiser(train.x)
    x, y = standardise(held.x).numpy(), held.y.numpy()
    models = regularisation_path(Labelled(standardise(train.x), train.y), C_GRID)
    scores = ours.details["validation_by_C"]
    assert scores == pytest.approx([100 * model.score(x, y) for model in models])
    assert ours.details["C"] == C_GRID[scores.index(max(scores))]
    assert accuracy(ours, held) == max(scores)
    assert max(scores) > min(scores), "the choice matters"


@pytest.mark.parametrize(
    ("k", "temperature"), [(1, 0.5), (20, 0.1), (50, 0.5), (10_000, 0.07), (50, 0.005)]
)
def test_neighbours_vote_as_in_the_definition(k: int, temperature: float) -> None:
    train, held = parts(load_digits)
    train, held = Labelled(train.x[:100], train.y[:100]), Labelled(held.x[:50], held.y[:50])
    ours = neighbours(train, k, temperature)
    assert ours.details == {"k": min(k, 100)}
    for row, found in zip(held.x.double(), ours.scores(held.x).argmax(1).tolist(), strict=True):
        rows = zip(train.x.double(), train.y.tolist(), strict=True)
        cosines = [(float(row @ x / row.norm() / x.norm()), label) for x, label in rows]
        votes = [0.0] * 10
        for cosine, label in sorted(cosines, reverse=True)[:k]:
            votes[label] += math.exp(cosine / temperature)
        assert votes[found] > 0.999 * max(votes), "of equals either, up to rounding"


def test_a_class_among_the_first_is_found() -> None:
    scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    rows = Labelled(scores, torch.tensor([0, 1, 0, 0]))
    classifier = Classifier(lambda x: x)
    found = [accuracy_within(*rows, first) for first in (1, 2, 3, 5)]
    assert found == [25.0, 50.0, 100.0, 100.0]
    assert accuracy(classifier, rows) == found[0]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_have_a_column_for_each_class_up_to_the_last(name: str) -> None:
    """Also for a class between others that no training row has, which is never predicted."""
    train, held = parts(load_iris)
    y = torch.where(train.y == 1, 3, train.y)
    scores = CLASSIFIERS[name](Labelled(train.x, y), Labelled(train.x, y), 0).scores(held.x)
    assert scores.shape == (len(held.x), 4)
    assert 1 not in scores.argmax(dim=1).tolist()


def by_scikit_learn(x: np.ndarray, y: np.ndarray, folds: int, seed: int) -> tuple[list[float], ...]:
    accuracy, c, inner, auroc = [], [], [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y):
        search = GridSearchCV(SVC(), {"C": list(svm.C_GRID)}, cv=5).fit(x[train], y[train])
        accuracy.append(100 * search.score(x[test], y[test]))
        c.append(search.best_params_["C"])
        inner.append(100 * search.best_score_)
        one_hot, scores = np.eye(max(y) + 1)[y[test]], search.decision_function(x[test])
        auroc.append(100 * roc_auc_score(one_hot if scores.ndim > 1 else y[test], scores))
    return accuracy, c, inner, auroc


@pytest.mark.parametrize(
    ("load", "folds", "seed", "classes"),
    [(load_iris, 4, 0, 3), (load_wine, 3, 7, 3), (load_wine, 3, 7, 2)],
)
def test_identical_to_grid_search(load: Callable, folds: int, seed: int, classes: int) -> None:
    x, y = load(return_X_y=True)
    x, y = x[y < classes], y[y < classes]
    found = zip(*svm_folds(x, y, folds, seed), strict=True)
    accuracy, c, inner, auroc = by_scikit_learn(x, y, folds, seed)
    ours, chosen, within, beside = map(list, found)
    assert ours == pytest.approx(accuracy, abs=1e-12)
    assert chosen == c
    assert within == pytest.approx(inner, abs=1e-12)
    assert [one["auroc"] for one in beside] == pytest.approx(auroc, abs=1e-9)


def test_the_fixed_part_is_scored_by_grid_search_on_all_others() -> None:
    x, y = load_wine(return_X_y=True)
    train, test = draw_share(y, 0.4, 0)
    assert sorted([*train, *test]) == [*range(len(y))]
    shares = np.bincount(y[test]) / np.bincount(y)
    assert shares == pytest.approx([0.4] * 3, abs=0.01), "of each class"
    scored = svm_part(x, y, train, test)
    search = GridSearchCV(SVC(), {"C": list(svm.C_GRID)}, cv=5).fit(x[train], y[train])
    assert scored.accuracy == pytest.approx(100 * search.score(x[test], y[test]), abs=1e-12)
    assert (scored.c, scored.inner) == (search.best_params_["C"], 100 * search.best_score_)


def test_linear_folds_are_a_search_whose_validation_is_the_next_fold() -> None:
    x, y = load_wine(return_X_y=True)
    scored = linear_folds(x, y, 5, 3)
    fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=3).split(x, y)):
        fold[test] = k
    for k, (right, c, inner, _) in enumerate(scored):
        rest, test = fold != k, fold == k
        held = np.where(fold[rest] == (k + 1) % 5, 0, -1)  # -1: always fitted on
        model = make_pipeline(StandardScaler(), LinearSVC(random_state=3))
        grid = {"linearsvc__C": list(svm.C_GRID)}
        search = GridSearchCV(model, grid, cv=PredefinedSplit(held), refit=False)
        search.fit(x[rest], y[rest])
        assert c == search.best_params_["linearsvc__C"]
        assert inner == pytest.approx(100 * search.best_score_)
        model.set_params(linearsvc__C=c).fit(x[rest][held == -1], y[rest][held == -1])
        assert right == pytest.approx(100 * model.score(x[test], y[test]))
    with pytest.raises(UserError, match="embeddings are not finite"):
        linear_folds(np.full((40, 2), np.nan), np.repeat([0, 1], 20))


def test_constant_embeddings_score_the_largest_class() -> None:
    x, y = np.ones((40, 3)), np.repeat([0, 1], [30, 10])
    assert [fold.accuracy for fold in svm_folds(x, y, 5)] == pytest.approx([75.0] * 5)


def test_what_cannot_be_scored_is_named() -> None:
    with pytest.raises(UserError, match="class 1 has 3 members, fewer than the 10 folds"):
        check_folds(np.repeat([0, 1], [20, 3]), 10)
    with pytest.raises(UserError, match="class 1 has 3 members: 2 folds leave too few"):
        check_folds(np.repeat([0, 1], [20, 3]), 2)
    with pytest.raises(UserError, match="class 0 has 5 members: 5 folds leave too few"):
        check_folds(np.repeat([0, 1], [5, 5]), 5)
    with pytest.raises(UserError, match="all samples have one class"):
        check_folds(np.zeros(20), 10)
    with pytest.raises(UserError, match="embeddings are not finite"):
        svm_folds(np.full((40, 2), np.nan), np.repeat([0, 1], 20))
    with pytest.raises(UserError, match="embeddings are too large to square"):
        svm_folds(np.full((40, 2), 1e200), np.repeat([0, 1], 20))


def test_the_smallest_classes_that_pass_the_check_are_scored_like_scikit_learns() -> None:
    y = np.repeat([0, 1, 2], [12, 4, 9])
    x = np.random.default_rng(0).normal(size=(25, 3)) + y[:, None]
    check_folds(y, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        accuracy = [fold.accuracy for fold in svm_folds(x, y, 2)]
        assert not seen
        assert accuracy == pytest.approx(by_scikit_learn(x, y, 2, 0)[0])
