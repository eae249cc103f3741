"""Captions of photographs: five of each, to train on and to find each other."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import torch

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import fetch_files, local_file
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.sentence.data import Corpus, lines_of, rows_of, side_by_side
from contrastbench.domains.sentence.encoding import Embeddings
from contrastbench.errors import UserError

HELD_OUT_ROWS = 1_000  # rows at the end that are reported, and as many before them that choose
CaptionRows = list[list[str]]


class Captions(NamedTuple):
    """Rows to train on, those that choose the model, and those that are reported."""

    train: Corpus
    dev: CaptionRows
    test: CaptionRows
    notes: Mapping[str, int] = MappingProxyType({})  # on reading, where there is something to say

    def few(self, limit: int) -> "Captions":
        """Return few rows to score on, for a smoke test."""
        return self._replace(dev=self.dev[:limit], test=self.test[:limit])


def load_captions(declared: Dataset, data_root: Path | None) -> Captions:
    """Read Multi30k's captions from one file, or from the five files that it is made of.

    Raises:
        UserError: they cannot be had, or are others.
    """
    whole = local_file(declared, data_root)
    paths = [whole] if whole else fetch_files(declared, data_root)
    every = rows_of(whole, lines_of(whole)) if whole else side_by_side(paths)
    if every.sha256 != declared.content:
        files = ", ".join(map(str, paths))
        raise UserError(f"not Multi30k's captions (their content is another): remove {files}")
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
