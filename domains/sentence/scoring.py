"""Scores of sentences: SentEval's of pairs, and whether captions find each other.

Those of pairs are Spearman correlations of cosine and gold score. Captions of photographs are rows
of five, to train on as well.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from contrastbench.domains.base import Evaluation
from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import Array
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.sentence.data import Corpus, Pairs
from contrastbench.domains.sentence.encoder import Embeddings
from contrastbench.errors import UserError, tell
from contrastbench.losses.contrast import unit

DIGITS = 6  # of a cosine of float32 numbers, whose order is no chance
ROUNDING = 1e-9  # of a cosine, computed in float64 of float32 numbers
SEARCH = "search_recall_at_1"
CaptionRows = list[list[str]]


def evaluate_correlations(
    embeddings: Embeddings, sets: Mapping[str, Sequence[Pairs]], whiten: bool
) -> Evaluation:
    """All sets' correlations and their average.

    A set's number is the correlation over all of its subsets' pairs together (`all`); the mean over
    subsets and the mean weighted by their sizes stand in the details. The average is that of
    numbers rounded to two decimals, as in SimCSE's code.
    """
    metrics, details = {}, {}
    for name, parts in sets.items():
        cosine, gold = cosines(embeddings, parts, whiten), golds(parts)
        if constant(cosine):
            tell(f"{name}: all cosines are equal but for rounding, so the correlation is 0")
        metrics[name] = 100 * spearman(cosine, gold)
        details[name] = subsets(cosine, gold, parts)
    if len(metrics) == 1:
        return Evaluation(
            {"spearman": next(iter(metrics.values()))}, "spearman", details={"sets": details}
        )
    average = float(np.mean([round(value, 2) for value in metrics.values()]))
    return Evaluation({**metrics, "avg": average}, "avg", details={"sets": details})


def correlation(embeddings: Embeddings, parts: Sequence[Pairs], whiten: bool) -> float:
    """Spearman correlation in percent over the pairs of all parts."""
    return 100 * spearman(cosines(embeddings, parts, whiten), golds(parts))


def spearman(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation; ties share their mean rank.

    A row that is constant but for rounding gives 0: the order of what rounding left is chance.

    >>> spearman(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0]))
    1.0
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("similarities are not finite: the encoder diverged")
    return 0.0 if constant(x) or constant(y) else float(spearmanr(settled(x), y).statistic)


def settled(cosines: Array) -> Array:
    """Return cosines as they are, or rounded where more than half are then equal to another.

    >>> settled(np.array([1.0, 1.0 - 1e-8, 1.0 - 2e-8, 0.5])).tolist()
    [1.0, 1.0, 1.0, 0.5]
    """
    rounded = cosines.round(DIGITS)
    return rounded if 2 * len(np.unique(rounded)) <= len(cosines) else cosines


def constant(row: Array) -> bool:
    return bool(np.ptp(row) <= ROUNDING * max(1.0, np.abs(row).max()))


def cosines(embeddings: Embeddings, parts: Sequence[Pairs], whiten: bool) -> Array:
    """(n,) similarities of the pairs of all parts."""
    first = embeddings.of(sentence for part in parts for sentence in part.first)
    second = embeddings.of(sentence for part in parts for sentence in part.second)
    if whiten:
        first, second = whitened(first, second)
    return (unit(first.double()) * unit(second.double())).sum(dim=1).numpy()


def golds(parts: Sequence[Pairs]) -> Array:
    """(n,) scores that people gave."""
    return np.array([gold for part in parts for gold in part.gold])


def subsets(
    cosine: Array, gold: Array, parts: Sequence[Pairs]
) -> dict[str, float | int | dict[str, float]]:
    sizes = [len(part) for part in parts]
    cuts = np.cumsum(sizes)[:-1]
    shares = zip(np.split(cosine, cuts), np.split(gold, cuts), strict=True)
    each = {part.name: 100 * spearman(*share) for part, share in zip(parts, shares, strict=True)}
    return {
        "pairs": sum(sizes),
        "unscored": sum(part.unscored for part in parts),
        "mean": float(np.mean(list(each.values()))),
        "wmean": float(np.average(list(each.values()), weights=sizes)),
        "subsets": each,
    }


def whitened(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Rows after BERT-whitening (Su et al. 2021): their mean becomes 0, their covariance 1.

    Directions without variance are left out. There have to be more rows than dimensions: after it
    every pair of fewer would be as far apart as any other.
    """
    x = torch.cat([first, second]).double()
    fault = f" sentences cannot be whitened in {x.shape[1]} dimensions: leave whiten out"
    refuse(len(x), (len(x) <= x.shape[1], fault))
    x = x - x.mean(dim=0)
    values, vectors = torch.linalg.eigh(x.T @ x / len(x))
    kept = values > values[-1] * 1e-9
    z = x @ (vectors[:, kept] / values[kept].sqrt())
    return z[: len(first)], z[len(first) :]


class Captions(NamedTuple):
    """Rows to train on, those that choose the model, and those that are reported."""

    train: Corpus
    dev: CaptionRows
    test: CaptionRows
    search: bool = False  # whether the first sentence of a row is to find the second

    def few(self, limit: int) -> "Captions":
        return self._replace(dev=self.dev[:limit], test=self.test[:limit])


def caption_sentences(rows: CaptionRows) -> list[str]:
    return [*chain.from_iterable(rows)]


def caption_classes(embeddings: Embeddings, rows: CaptionRows) -> Labelled:
    """Return the embeddings of all sentences; those of a row are a class, to find each other."""
    y = torch.arange(len(rows)).repeat_interleave(torch.tensor([*map(len, rows)]))
    return Labelled(embeddings.of(caption_sentences(rows)), y)


def search_recall(embeddings: Embeddings, rows: CaptionRows) -> float:
    """Return the percent of rows whose first sentence finds the second, the nearest by cosine.

    It searches among the second sentences of all rows, each counted once, and never among the
    first: whoever asks wants no other question. Where a question stands in several rows, the second
    sentence of any of them is right.
    """
    first, second = zip(*rows, strict=True)
    pool, right = [*dict.fromkeys(second)], {*zip(first, second, strict=True)}
    cosine = unit(embeddings.of(first)) @ unit(embeddings.of(pool)).T
    found = [pool[place] for place in cosine.argmax(dim=1).tolist()]
    return 100 * sum(pair in right for pair in zip(first, found, strict=True)) / len(rows)
