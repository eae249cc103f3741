"""The sets of sentences that are scored, and the corpora that are trained on.

Readers of files import it and not the face, whose recipe asks them for hashes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contrastbench.domains import saved
from contrastbench.domains.declaration import Dataset, Source, declared_sets

HUB = os.environ.get("HF_ENDPOINT", "https://huggingface.co")


@dataclass(frozen=True)
class SentenceDataset(Dataset):
    """A set of sentences: besides its source, how it is read and scored."""

    rows: Mapping[str, int] = field(default_factory=dict)  # of its parts; fewer are truncated
    own_corpus: bool = False  # it has its own training sentences
    corpus: bool = False  # its sentences can be trained on where another set is scored


DECLARED = declared_sets(Path(__file__).with_name("datasets.toml"), SentenceDataset, hub=HUB)
DATASETS = {name: about for name, about in DECLARED.items() if about.reader}  # that are scored
CORPORA = {name: about for name, about in DECLARED.items() if about.corpus}  # to train on
SENTEVAL_URL = DATASETS["sts"].url
PAIRS_HELP = (
    "tab-separated sentence1, sentence2, score; or, to train and score on, "
    "rows of sentences that belong together"
)
SOURCES = (
    Source("pairs", "FILE[,TEST]", PAIRS_HELP, "sentence", (".tsv",)),
    Source("text", "FILE", "lines, for --recipe corpus=", "sentence", (".txt",), corpus=True),
    saved.source("pairs of the datasets library; texts, for --recipe corpus="),
)
