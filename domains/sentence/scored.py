"""Read what a declared set of sentences scores: pairs, transfer tasks or captions."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from contrastbench.domains.download import local_file, obtain
from contrastbench.domains.reading import refuse
from contrastbench.domains.sentence import data, graded, transfer
from contrastbench.domains.sentence.datasets import SentenceDataset
from contrastbench.domains.sentence.scoring import Captions
from contrastbench.domains.sentence.transfer import TransferTask

HELD_OUT_ROWS = 1_000  # rows at the end that are reported, and as many before them that choose


@dataclass(frozen=True)
class ScoredSets:
    """The sets of a dataset, their hash, and the dataset's own training sentences."""

    sha256: str
    dev: data.Pairs | None = None  # pairs that choose the model
    sets: dict[str, list[data.Pairs]] = field(default_factory=dict)
    tasks: list[TransferTask] = field(default_factory=list)
    captions: Captions | None = None
    corpus: Callable[[], data.Corpus] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)  # on reading

    @property
    def compared(self) -> Iterator[str]:
        for part in chain([self.dev] if self.dev else [], *self.sets.values()):
            yield from part.first
            yield from part.second
        if self.captions:
            yield from chain(*self.captions.dev, *self.captions.test)

    def few(self, limit: int) -> "ScoredSets":
        """Return few of each set, for a smoke test: they are other data."""
        return replace(
            self,
            sha256=hashlib.sha256(f"{self.sha256} few {limit}".encode()).hexdigest(),
            dev=self.dev and self.dev.few(limit),
            sets={name: [part.few(limit) for part in some] for name, some in self.sets.items()},
            tasks=[task.few(limit) for task in self.tasks],
            captions=self.captions and self.captions.few(limit),
        )


def read_graded(about: SentenceDataset, data_root: Path | None) -> ScoredSets:
    dev, sets = graded.graded_pairs("dev"), {about.name: [graded.graded_pairs("test")]}
    digest = hashlib.sha256(repr((dev, sets)).encode()).hexdigest()
    return ScoredSets(
        digest, dev, sets, corpus=lambda: data.sentences_of(about.name, graded.training_sentences())
    )


def read_sts(about: SentenceDataset, data_root: Path | None) -> ScoredSets:
    files, dev = dev_pairs(about, data_root)
    sets = data.sts_sets(files)
    return ScoredSets(files.sha256.hexdigest(), dev, sets)


def read_transfer(about: SentenceDataset, data_root: Path | None) -> ScoredSets:
    files, dev = dev_pairs(about, data_root)
    tasks = transfer.tasks(files)
    return ScoredSets(files.sha256.hexdigest(), dev, tasks=tasks)


def dev_pairs(about: SentenceDataset, data_root: Path | None) -> tuple[data.TextFiles, data.Pairs]:
    """Open SentEval's files, and read the pairs that choose the model first."""
    files = data.TextFiles(data.senteval_path(about, data_root))
    dev = data.stsb_pairs(files, "dev")
    data.check_size(files.root, "STSB dev", len(dev))
    return files, dev


def read_captions(about: SentenceDataset, data_root: Path | None) -> ScoredSets:
    """Read Multi30k's captions from one file, or from the five files that it is made of."""
    whole = local_file(about, data_root)
    paths = [whole] if whole else [obtain(file, data_root) for file in about.files]
    every = data.rows_of(whole, data.lines_of(whole)) if whole else data.side_by_side(paths)
    files = ", ".join(map(str, paths))
    another = every.sha256 != about.content
    refuse("not Multi30k's captions", (another, f" (their content is another): remove {files}"))
    return last_held_out(every)


def read_pairs(about: SentenceDataset, data_root: Path | None) -> ScoredSets:
    """Read pairs whose first sentence is to find the second, most of them to train on."""
    path = obtain(about, data_root)
    return last_held_out(data.rows_of(path, data.lines_of(path)), search=True)


def last_held_out(every: data.Corpus, search: bool = False) -> ScoredSets:
    """Hold out the last rows, and as many before them; the others are the corpus."""
    rows, last = every.rows, len(every.rows) - HELD_OUT_ROWS
    first = last - HELD_OUT_ROWS
    train = every._replace(rows=rows[:first])
    held = Captions(train, rows[first:last], rows[last:], search)
    return ScoredSets(train.sha256, captions=held, corpus=lambda: train)
