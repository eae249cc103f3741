"""Sentences by name: what declared sets score, and what users bring, to score or to train on.

Pairs are two files, whose first chooses the model and whose second is reported, or one, of which a
seeded fifth, the same for every run, chooses. Splits of `datasets` stand for two files. A file of
rows without scores trains, chooses and reports: each sentence is to find another one of its row.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from contrastbench.domains import own, saved
from contrastbench.domains.declaration import reader_of
from contrastbench.domains.download import local_file, obtain
from contrastbench.domains.reading import is_number, reading, refuse
from contrastbench.domains.sentence import data, graded, transfer
from contrastbench.domains.sentence.data import Corpus, lines_of, named_columns, scored_pairs
from contrastbench.domains.sentence.datasets import DATASETS, SOURCES, SentenceDataset
from contrastbench.domains.sentence.scoring import CaptionRows, Captions
from contrastbench.domains.sentence.transfer import TransferTask

if TYPE_CHECKING:
    import datasets

HELD_OUT_ROWS = 1_000  # rows at the end that are reported, and as many before them that choose
PAIR_COLUMNS = ("sentence1", "sentence2", "score")
PAIR_NAMES = ", ".join(PAIR_COLUMNS)
SENTENCE = "(?:sentences?|sent|text|question|phrase|s|q)[_ ]?"
COLUMN_NAMES = tuple(  # as people write them
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        f"{SENTENCE}(?:1|a|one)|#1 string|first(?:[_ ]sentence)?|premise",
        f"{SENTENCE}(?:2|b|two)|#2 string|second(?:[_ ]sentence)?|hypothesis",
        "quality|(?:gold[_ ]?)?(?:score|label|similarity|relatedness)(?:[_ ]?score)?|gold|sim",
    )
)
VALIDATION_SHARE = 0.2  # of the pairs of one file
HELD_OUT_SHARE = 0.1  # of rows without scores, to choose by and as many to report
LEAST_ROWS = 20  # without scores
TEXTS = ("text", "sentence")  # names of a column of sentences to train on
SCORE_FIX = "write a number such as 2.5, or nothing where there is none"
Placed = tuple[str, list[str]]  # where a row stands, and its columns
OwnPairs = tuple[list[list[Placed]], Mapping[str, Any]]  # of each part, and notes


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


def read_own(kind: str, what: str, data_root: Path | None) -> ScoredSets:
    name = f"{kind}:{what}"
    paths = own.comma_files(what, data_root) if kind == "pairs" else []
    if len(paths) == 1 and (found := rows_without_scores(paths[0]))[0]:
        return held_out(name, *found)
    parts, notes = READERS[kind](what, data_root)
    if len(parts) == 1:  # of which a seeded fifth chooses
        (rows,) = parts
        order = np.random.default_rng(0).permutation(len(rows))
        chosen = order < round(VALIDATION_SHARE * len(rows))
        parts = [[*compress(rows, chosen)], [*compress(rows, ~chosen)]]
    dev, test = (
        scored_pairs(name, part, rows, SCORE_FIX)
        for part, rows in zip(("dev", "test"), parts, strict=True)
    )
    same = [f"{part.gold[0]:g}" for part in (dev, test) if len({*part.gold}) < 2]
    refuse(name, (same, ": all scores of a part are {}: give different ones"))
    digest = hashlib.sha256(repr((dev, test)).encode()).hexdigest()
    if unscored := dev.unscored + test.unscored:
        notes = {**notes, "pairs without a score": unscored}
    return ScoredSets(digest, dev, {"pairs": [test]}, notes=notes)


def rows_without_scores(path: Path) -> tuple[CaptionRows, Mapping[str, list[str]]]:
    """Return the rows of a file whose lines end in no number, and hard negatives; or none."""
    split, negatives = named_columns(path, lines_of(path))
    rows = [some for row in split if (some := [*filter(None, row)])]
    if not rows or min(map(len, rows)) < 2 or pair_columns(path, rows[0]):
        return [], {}
    lettered = [any(map(str.isalpha, "".join(column))) for column in zip(*rows, strict=False)]
    if any(is_number(row[-1]) for row in rows) or not all(lettered):
        return [], {}
    named = zip(rows[0], COLUMN_NAMES, strict=False)
    headed = all(pattern.fullmatch(name) for name, pattern in named)
    return rows[headed:], negatives


def held_out(name: str, rows: CaptionRows, negatives: Mapping[str, list[str]]) -> ScoredSets:
    several = [row for row in rows if len({*row}) > 1]
    groups = joined(several)
    counts = {
        "rows of one sentence twice, left out": len(rows) - len(several),
        "rows joined with another one of the same sentence": len(several) - len(groups),
    }
    few = f" has no scores and {len(groups)} rows without a common sentence"
    fix = f"give at least {LEAST_ROWS}, or a score as the third column"
    refuse(name, (len(groups) < LEAST_ROWS, f"{few}: {fix}"))
    order = np.random.default_rng(0).permutation(len(groups)).tolist()
    count = min(HELD_OUT_ROWS, round(HELD_OUT_SHARE * len(groups)))
    test, dev, train = (
        [groups[k] for k in sorted(part)]
        for part in (order[:count], order[count : 2 * count], order[2 * count :])
    )
    parts = ((dev, test), (train, negatives) if negatives else train)
    scored, trained = (hashlib.sha256(repr(part).encode()).hexdigest() for part in parts)
    corpus = Corpus(train, 0, trained, negatives=negatives)
    notes = {k: count for k, count in counts.items() if count}
    captions = Captions(corpus, dev, test)
    return ScoredSets(scored, captions=captions, corpus=lambda: corpus, notes=notes)


def joined(rows: CaptionRows) -> CaptionRows:
    """Join rows that share a sentence: to find it in the other row is no mistake.

    >>> joined([["Hi.", "Hello!"], ["Stop!", "No!"], ["Hello!", "Good morning."]])
    [['Hi.', 'Hello!', 'Good morning.'], ['Stop!', 'No!']]
    """
    number = {sentence: k for k, sentence in enumerate(dict.fromkeys(chain.from_iterable(rows)))}
    edges = np.array([(number[row[0]], number[sentence]) for row in rows for sentence in row])
    shape = (len(number), len(number))
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=shape)
    groups: dict[int, list[str]] = {}
    for sentence, group in zip(number, connected_components(graph)[1].tolist(), strict=True):
        groups.setdefault(group, []).append(sentence)
    return [*groups.values()]


def placed_pairs(path: Path) -> list[Placed]:
    lines = enumerate(lines_of(path), 1)
    rows = [(f"{path} line {number}", line.split("\t")) for number, line in lines if line]
    header = rows[0][1] if rows else []
    places, width = pair_columns(path, header), len(header)
    nameless = bool(header) and not places
    unlike = width != len(PAIR_COLUMNS) or names_columns(rows)
    refuse(
        path,
        (nameless and width == 1, " has one column: put tabs between columns"),
        (nameless and unlike, f" has {width} columns: name those of {PAIR_NAMES} in line 1"),
    )
    odd = [(where, len(row)) for where, row in rows if len(row) != width]
    refuse("", (odd, "{} has {} columns: repair it"))
    chosen = places or range(width)
    return [(where, [row[place] for place in chosen]) for where, row in rows[bool(places) :]]


def pair_columns(what: object, names: Sequence[str]) -> list[int]:
    """Return the places of both sentences and of the score; none where they are not named."""
    places = [
        [k for k, name in enumerate(names) if name == exact]
        or [k for k, name in enumerate(names) if pattern.fullmatch(name.strip())]
        for exact, pattern in zip(PAIR_COLUMNS, COLUMN_NAMES, strict=True)
    ]
    if not all(places):
        return []
    double = [" or ".join(dict.fromkeys(names[k] for k in some)) for some in places if some[1:]]
    refuse(what, (double, ": several columns have the name {}: rename or remove them"))
    return [some[0] for some in places]


def names_columns(rows: list[Placed]) -> bool:
    scores = [is_number(row[-1]) for _, row in rows if row[-1].strip()]
    return len(scores) > 1 and not scores[0] and all(scores[1:])


def read_saved(what: str, data_root: Path | None) -> OwnPairs:
    """The validation part chooses, the test part is reported; training pairs are not seen."""
    parts, notes = saved.saved_parts(what, data_root)
    if not {"validation", "test"} <= parts.keys():
        parts = {"": parts.get("test", next(iter(parts.values())))}
    chosen = [parts[part] for part in ("", "validation", "test") if part in parts]
    return [split_columns(f"hf:{what}", part) for part in chosen], notes


def split_columns(what: str, part: "datasets.Dataset") -> list[Placed]:
    """The columns of a split; GLUE calls the score a label."""
    names = part.column_names
    places = pair_columns(what, names)
    refuse(what, (not places, f" has the columns {', '.join(names)}: name {PAIR_NAMES}"))
    cells = (part.data.column(names[k]).to_pylist() for k in places)  # as `saved_texts` does
    table = [["" if value is None else str(value) for value in column] for column in cells]
    return [(f"{what} row {k}", [*row]) for k, row in enumerate(zip(*table, strict=True))]


READERS: dict[str, Callable[[str, Path | None], OwnPairs]] = {
    "pairs": lambda what, root: ([*map(placed_pairs, own.comma_files(what, root))], {}),
    "hf": read_saved,
}


def saved_texts(what: str, data_root: Path | None) -> list[str]:
    """Return the sentences of the training part of a set of `datasets`.

    They are taken as they are kept: `datasets` itself opens files and addresses that stand there
    for pictures.
    """
    with reading(f"hf:{what}", fault="cannot be read", extra="hf"):
        part = next(iter(saved.saved_parts(what, data_root)[0].values()))
        names = [name for name in TEXTS if name in part.column_names]
        refuse(f"hf:{what}", (not names, " has no column text or sentence to train on"))
        return [str(text or "") for text in part.data.column(names[0]).to_pylist()]


ADAPTER: own.Adapter[ScoredSets] = own.Adapter(
    "sentence",
    DATASETS,
    SOURCES,
    read_own,
    lambda name, root: reader_of(__package__, DATASETS[name])(DATASETS[name], root),
)
read_any = ADAPTER.read
