"""Few-shot classification: classes that are told apart by a few rows of each."""

import math

import numpy as np
from sklearn.linear_model import LogisticRegression

from contrastbench.domains.progress import tracked
from contrastbench.domains.reading import refuse
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.logistic import unconverged
from contrastbench.losses.contrast import unit

WAYS, SHOTS, QUERIES, EPISODES = 5, (1, 5), 15, 2000
ITERATIONS = 1000


def few_shot(rows: Labelled, seed: int = 0, episodes: int = EPISODES) -> dict[str, float]:
    """Accuracy in percent of 5-way episodes of 1 and 5 shots, each with its interval's half width.

    An episode draws five classes, so many rows of each to fit and fifteen others (or all there are)
    to test: logistic regression (C = 1) on rows of length one. The interval is 1.96 standard errors
    of the mean over episodes. RényiCL (Lee and Shin 2022, appendix B) has 2,000 episodes and
    logistic regression; queries and lengths are open there.
    """
    accuracies = {}
    x, y = unit(rows.x).cpu().numpy(), rows.y.cpu().numpy()
    for shots in SHOTS:
        members = [np.flatnonzero(y == label) for label in np.unique(y)]
        members = [own for own in members if len(own) > shots]
        fault = f" classes have {shots + 1} samples, and an episode draws {WAYS}: score --by linear"
        refuse(len(members), (len(members) < WAYS, fault))
        rng, name = np.random.default_rng(seed), f"{WAYS}-way_{shots}-shot"
        scores = [episode(x, members, shots, rng) for _ in tracked(range(episodes), name)]
        accuracies[name] = 100 * float(np.mean(scores))
        accuracies[f"{name}_interval"] = 196 * float(np.std(scores, ddof=1)) / math.sqrt(episodes)
    return accuracies


def episode(x: np.ndarray, items: list[np.ndarray], shots: int, rng: np.random.Generator) -> float:
    chosen = rng.choice(len(items), WAYS, replace=False)
    drawn = [rng.permutation(items[label])[: shots + QUERIES] for label in chosen]
    fit = np.concatenate([rows[:shots] for rows in drawn])
    test = np.concatenate([rows[shots:] for rows in drawn])
    truth = np.repeat(np.arange(WAYS), [len(rows) - shots for rows in drawn])
    with unconverged():
        model = LogisticRegression(max_iter=ITERATIONS)
        model.fit(x[fit], np.repeat(np.arange(WAYS), shots))
    return float((model.predict(x[test]) == truth).mean())
