"""Captions of photographs: five of each, to train on and to find each other."""

from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

from contrastbench.domains.base import Evaluation
from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import local_file
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.retrieval import recall_at_1, retrieval
from contrastbench.domains.sentence.data import Corpus, corpus_rows
from contrastbench.domains.sentence.encoding import Embeddings
from contrastbench.errors import UserError

HELD_OUT_ROWS = 1_000  # rows at the end that are reported, and as many before them that choose
CAPTIONS_FIX = "paste the unpacked train.1.en to train.5.en of {} | gzip > {}"
CaptionRows = list[list[str]]


class Captions(NamedTuple):
    """Rows to train on, those that choose the model, and those that are reported."""

    train: Corpus
    dev: CaptionRows
    test: CaptionRows

    def few(self, limit: int) -> "Captions":
        """Return few rows to score on, for a smoke test."""
        return self._replace(dev=self.dev[:limit], test=self.test[:limit])


def load_captions(declared: Dataset, data_root: Path | None) -> Captions:
    """Read Multi30k's captions from the data root.

    Raises:
        UserError: they are not there, or are others.
    """
    fix = CAPTIONS_FIX.format(declared.url, declared.file)
    path = local_file(declared, data_root)
    if path is None:
        place = f"in a folder that --data-root (or CONTRASTBENCH_DATA) names: {fix}"
        raise UserError(f"captions are not downloaded: make {declared.file} {place}")
    every = corpus_rows(path)
    if every.sha256 != declared.content:
        raise UserError(f"{path} is not Multi30k's captions (its content is another): {fix}")
    rows, last = every.rows, len(every.rows) - HELD_OUT_ROWS
    first = last - HELD_OUT_ROWS
    return Captions(every._replace(rows=rows[:first]), rows[first:last], rows[last:])


def caption_sentences(rows: CaptionRows) -> list[str]:
    """Return all sentences of the rows."""
    return [*chain.from_iterable(rows)]


def caption_classes(embeddings: Embeddings, rows: CaptionRows) -> Labelled:
    """Return the embeddings of all sentences; those of a row are a class."""
    y = torch.arange(len(rows)).repeat_interleave(torch.tensor([*map(len, rows)]))
    return Labelled(embeddings.of(caption_sentences(rows)), y)


def evaluate_captions(embeddings: Embeddings, rows: CaptionRows) -> Evaluation:
    """Score each caption by whether the nearest other one is of the same photograph."""
    scores = retrieval(caption_classes(embeddings, rows))
    return Evaluation(scores, "recall_at_1", samples={"test": len(rows)})


def validate(embeddings: Embeddings, rows: CaptionRows) -> float:
    """Return the recall at 1 in percent, which chooses the model."""
    return recall_at_1(caption_classes(embeddings, rows))
