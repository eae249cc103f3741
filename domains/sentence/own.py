"""Sentences that users bring: pairs with scores to score on, and lines to train on.

Pairs are two files, whose first chooses the model and whose second is reported, or one, of which a
seeded fifth, the same for every run, chooses. Splits of `datasets` stand for two files. A file of
rows without scores trains, chooses and reports: each sentence is to find another one of its row.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from contrastbench.domains import own, saved
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import is_number
from contrastbench.domains.sentence.captions import HELD_OUT_ROWS, CaptionRows, Captions
from contrastbench.domains.sentence.data import Corpus, gold_score, lines_of, scored_pairs
from contrastbench.domains.sentence.datasets import SOURCES
from contrastbench.domains.sentence.scored import ScoredSets
from contrastbench.errors import UserError

if TYPE_CHECKING:
    import datasets

PAIR_COLUMNS = ("sentence1", "sentence2", "score")
SENTENCE = "(?:sentences?|sent|text|question|phrase|s|q)[_ ]?"
COLUMN_NAMES = tuple(  # as people write them
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        f"{SENTENCE}(?:1|a|one)|first(?:[_ ]sentence)?|premise",
        f"{SENTENCE}(?:2|b|two)|second(?:[_ ]sentence)?|hypothesis",
        "(?:gold[_ ]?)?(?:score|label|similarity|relatedness)(?:[_ ]?score)?|gold|sim",
    )
)
VALIDATION_SHARE = 0.2  # of the pairs of one file
HELD_OUT_SHARE = 0.1  # of rows without scores, to choose by and as many to report
LEAST_ROWS = 20  # without scores
TEXTS = ("text", "sentence")  # names of a column of sentences to train on
SCORE_FIX = "write a number such as 2.5, or nothing where there is none"
PairRows = list[list[str]]


def load_own_pairs(source: Source, what: str, data_root: Path | None) -> ScoredSets:
    """Load a user's own pairs of sentences.

    Raises:
        UserError: they cannot be read, or are too few to rank.
    """
    name = f"{source.kind}:{what}"
    with own.reading_own(source, name):
        paths = own.comma_files(what, data_root) if source.kind == "pairs" else []
        if len(paths) == 1 and (rows := rows_without_scores(paths[0])):
            return held_out(name, rows)
        parts = READERS[source.kind](what, data_root)
        if len(parts) == 1:
            parts = split_pairs(parts[0])
        dev, test = (
            scored_pairs(name, part, rows)
            for part, rows in zip(("dev", "test"), parts, strict=True)
        )
    for part in (dev, test):
        if len(set(part.gold)) < 2:
            raise UserError(
                f"{name}: all scores of a part are {part.gold[0]:g}: give different ones"
            )
    digest = hashlib.sha256(repr((dev, test)).encode()).hexdigest()
    return ScoredSets(digest, dev, {"pairs": [test]})


def rows_without_scores(path: Path) -> CaptionRows:
    """Return the rows of a file whose lines end in no number; none if some do."""
    lines = lines_of(path)
    rows = [[part for part in map(str.strip, line.split("\t")) if part] for line in lines]
    rows = [row for row in rows if row]
    if not rows or min(map(len, rows)) < 2 or pair_columns(path, rows[0]):
        return []
    lettered = [any(map(str.isalpha, "".join(column))) for column in zip(*rows, strict=False)]
    if any(is_number(row[-1]) for row in rows) or not all(lettered):
        return []
    named = zip(rows[0], COLUMN_NAMES, strict=False)
    return rows[1:] if all(pattern.fullmatch(name) for name, pattern in named) else rows


def held_out(name: str, rows: CaptionRows) -> ScoredSets:
    """Split rows by a seed that is the same for every run.

    Raises:
        UserError: there are too few.
    """
    several = [row for row in rows if len({*row}) > 1]
    groups = joined(several)
    counts = {
        "rows of one sentence twice, left out": len(rows) - len(several),
        "rows joined with another one of the same sentence": len(several) - len(groups),
    }
    if len(groups) < LEAST_ROWS:
        raise UserError(
            f"{name} has no scores and {len(groups)} rows without a common sentence: "
            f"give at least {LEAST_ROWS}, or a score as the third column"
        )
    order = np.random.default_rng(0).permutation(len(groups)).tolist()
    count = min(HELD_OUT_ROWS, round(HELD_OUT_SHARE * len(groups)))
    test, dev, train = (
        [groups[k] for k in sorted(part)]
        for part in (order[:count], order[count : 2 * count], order[2 * count :])
    )
    scored, trained = (
        hashlib.sha256(repr(part).encode()).hexdigest() for part in ((dev, test), train)
    )
    corpus = Corpus(train, 0, trained)
    notes = {what: count for what, count in counts.items() if count}
    return ScoredSets(scored, captions=Captions(corpus, dev, test, notes), corpus=lambda: corpus)


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


def split_pairs(rows: PairRows) -> list[PairRows]:
    """A fifth of the pairs, and the others."""
    chosen = np.random.default_rng(0).permutation(len(rows)) < round(VALIDATION_SHARE * len(rows))
    return [
        [row for row, here in zip(rows, chosen, strict=True) if here == first]
        for first in (True, False)
    ]


def read_files(what: str, data_root: Path | None) -> list[PairRows]:
    """One or two files of tab-separated pairs."""
    return [read_pairs(path) for path in own.comma_files(what, data_root)]


def read_pairs(path: Path) -> PairRows:
    """The columns of sentences and scores, in the order of the first line where it names them."""
    lines = enumerate(lines_of(path), 1)
    numbered = [(k, line.split("\t")) for k, line in lines if line]
    rows = [row for _, row in numbered]
    header = rows[0] if rows else []
    if not (places := pair_columns(path, header)):
        if len(header) == 1:
            raise UserError(f"{path} has one column: put tabs between columns")
        if header and (len(header) != len(PAIR_COLUMNS) or names_columns(rows)):
            fix = f"name those of {', '.join(PAIR_COLUMNS)} in line 1"
            raise UserError(f"{path} has {len(header)} columns: {fix}")
    for number, row in numbered:
        if len(row) != len(header):
            raise UserError(f"{path} line {number} has {len(row)} columns: repair it")
    chosen = places or range(len(header))
    return with_scores(
        (f"{path} line {number}", [row[place] for place in chosen])
        for number, row in numbered[bool(places) :]
    )


def with_scores(rows: Iterable[tuple[str, list[str]]]) -> PairRows:
    """Return rows that were given with their places; raise where a score is no number."""
    found = []
    for where, row in rows:
        gold_score(where, row, SCORE_FIX)
        found.append(row)
    return found


def pair_columns(what: object, names: Sequence[str]) -> list[int]:
    """Return the places of both sentences and of the score; none where they are not named.

    Raises:
        UserError: two columns are named as one of them.
    """
    known = [
        [k for k, name in enumerate(names) if pattern.fullmatch(name.strip())]
        for pattern in COLUMN_NAMES
    ]
    exact = [[k for k, name in enumerate(names) if name == column] for column in PAIR_COLUMNS]
    places = [named or alike for named, alike in zip(exact, known, strict=True)]
    if not all(places):
        return []
    for some in places:
        if len(some) > 1:
            double = " or ".join(dict.fromkeys(names[k] for k in some))
            raise UserError(
                f"{what}: several columns have the name {double}: rename or remove them"
            )
    return [some[0] for some in places]


def names_columns(rows: PairRows) -> bool:
    """Return whether the first line has a word where all others have a score."""
    scores = [is_number(row[-1]) for row in rows if row[-1].strip()]
    return len(scores) > 1 and not scores[0] and all(scores[1:])


def read_saved(what: str, data_root: Path | None) -> list[PairRows]:
    """The validation part chooses, the test part is reported; training pairs are not seen."""
    parts = saved.saved_parts(what, data_root)
    if not {"validation", "test"} <= parts.keys():
        parts = {"": parts.get("test", next(iter(parts.values())))}
    chosen = [parts[part] for part in ("", "validation", "test") if part in parts]
    return [split_columns(what, part) for part in chosen]


def split_columns(what: str, part: "datasets.Dataset") -> PairRows:
    """The columns of a split; GLUE calls the score a label."""
    places = pair_columns(f"hf:{what}", part.column_names)
    if not places:
        columns = ", ".join(part.column_names)
        raise UserError(f"hf:{what} has the columns {columns}: name {', '.join(PAIR_COLUMNS)}")
    names = [part.column_names[place] for place in places]
    cells = (part.data.column(name).to_pylist() for name in names)  # as `saved_texts` does
    table = [["" if value is None else str(value) for value in column] for column in cells]
    rows = map(list, zip(*table, strict=True))
    return with_scores((f"hf:{what} row {number}", row) for number, row in enumerate(rows))


READERS: dict[str, Callable[[str, Path | None], list[PairRows]]] = {
    "pairs": read_files,
    "hf": read_saved,
}


def saved_texts(what: str, data_root: Path | None) -> list[str]:
    """Return the sentences of the training part of a set of `datasets`.

    They are taken as they are kept: `datasets` itself opens files and addresses that stand there
    for pictures.

    Raises:
        UserError: they cannot be read, or no column of them is there.
    """
    with own.reading_own(SOURCES[-1], f"hf:{what}"):
        part = next(iter(saved.saved_parts(what, data_root).values()))
        name = next((name for name in TEXTS if name in part.column_names), None)
        if name is None:
            raise UserError(f"hf:{what} has no column text or sentence to train on")
        return [str(text or "") for text in part.data.column(name).to_pylist()]
