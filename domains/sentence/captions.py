"""Captions of photographs: five of each, to train on and to find each other."""

from itertools import chain
from typing import NamedTuple

import torch

from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.sentence.data import Corpus
from contrastbench.domains.sentence.encoding import Embeddings
from contrastbench.losses.contrast import unit

SEARCH = "search_recall_at_1"
CaptionRows = list[list[str]]


class Captions(NamedTuple):
    """Rows to train on, those that choose the model, and those that are reported."""

    train: Corpus
    dev: CaptionRows
    test: CaptionRows
    search: bool = False  # whether the first sentence of a row is to find the second

    def few(self, limit: int) -> "Captions":
        """Return few rows to score on, for a smoke test."""
        return self._replace(dev=self.dev[:limit], test=self.test[:limit])


def caption_sentences(rows: CaptionRows) -> list[str]:
    """Return all sentences of the rows."""
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
