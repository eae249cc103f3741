"""Captions of photographs: five of each, to train on and to find each other."""

from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import local_file, obtain
from contrastbench.domains.reading import refuse
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.sentence.data import Corpus, lines_of, rows_of, side_by_side
from contrastbench.domains.sentence.encoding import Embeddings
from contrastbench.losses.contrast import unit

SEARCH = "search_recall_at_1"
HELD_OUT_ROWS = 1_000  # rows at the end that are reported, and as many before them that choose
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


def load_captions(declared: Dataset, data_root: Path | None) -> Captions:
    """Read Multi30k's captions from one file, or from the five files that it is made of."""
    whole = local_file(declared, data_root)
    paths = [whole] if whole else [obtain(file, data_root) for file in declared.files]
    every = rows_of(whole, lines_of(whole)) if whole else side_by_side(paths)
    files = ", ".join(map(str, paths))
    another = every.sha256 != declared.content
    refuse("not Multi30k's captions", (another, f" (their content is another): remove {files}"))
    return last_held_out(every)


def load_pairs(declared: Dataset, data_root: Path | None) -> Captions:
    """Read pairs whose first sentence is to find the second."""
    path = obtain(declared, data_root)
    return last_held_out(rows_of(path, lines_of(path)))._replace(search=True)


def last_held_out(every: Corpus) -> Captions:
    """Hold out the last rows, and as many before them."""
    rows, last = every.rows, len(every.rows) - HELD_OUT_ROWS
    first = last - HELD_OUT_ROWS
    return Captions(every._replace(rows=rows[:first]), rows[first:last], rows[last:])


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
