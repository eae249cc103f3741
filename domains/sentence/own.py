"""Sentences that users bring: pairs with scores to score on, and lines to train on.

Pairs are two files, whose first chooses the model and whose second is reported, or one, of which a
seeded fifth, the same for every run, chooses. The hub's splits stand for two files.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contrastbench.domains import hub, own
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import check_kind, is_number
from contrastbench.domains.sentence.data import TextFiles, scored_pairs, sentences_of
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
        f"{SENTENCE}(?:1|a|one)|first(?:[_ ]sentence)?",
        f"{SENTENCE}(?:2|b|two)|second(?:[_ ]sentence)?",
        "(?:gold[_ ]?)?(?:score|label|similarity|relatedness)(?:[_ ]?score)?|gold|sim",
    )
)
VALIDATION_SHARE = 0.2  # of the pairs of one file
TEXTS = ("text", "sentence")  # names of a column of sentences to train on
PairRows = list[list[str]]


def load_own_pairs(source: Source, what: str, data_root: Path | None) -> ScoredSets:
    """Load a user's own pairs of sentences.

    Raises:
        UserError: they cannot be read, or are too few to rank.
    """
    name = f"{source.kind}:{what}"
    with own.reading_own(source, name):
        parts = READERS[source.kind](what, data_root)
        if len(parts) == 1:
            parts = split_pairs(parts[0])
        dev, test = (
            scored_pairs(name, part, rows, "repair or remove it")
            for part, rows in zip(("dev", "test"), parts, strict=True)
        )
    for part in (dev, test):
        if len(set(part.gold)) < 2:
            raise UserError(
                f"{name}: all scores of a part are {part.gold[0]:g}: give different ones"
            )
    digest = hashlib.sha256(repr((dev, test)).encode()).hexdigest()
    return ScoredSets(digest, dev, {"pairs": [test]})


def split_pairs(rows: PairRows) -> list[PairRows]:
    """A fifth of the pairs, and the others."""
    chosen = np.random.default_rng(0).permutation(len(rows)) < round(VALIDATION_SHARE * len(rows))
    return [
        [row for row, here in zip(rows, chosen, strict=True) if here == first]
        for first in (True, False)
    ]


def read_files(what: str, data_root: Path | None) -> list[PairRows]:
    """One or two files of tab-separated pairs, the first line perhaps with the columns' names."""
    return [read_pairs(path) for path in own.comma_files(what, data_root)]


def read_pairs(path: Path) -> PairRows:
    """The columns of sentences and scores."""
    check_kind(path, "a text of pairs", "write a line for each, with tabs between its columns")
    lines = enumerate(TextFiles(path.parent).lines(path.name), 1)
    numbered = [(k, line.split("\t")) for k, line in lines if line]
    rows = [row for _, row in numbered]
    header = rows[0] if rows else []
    if not (places := pair_columns(path, header)):
        if header and (len(header) != len(PAIR_COLUMNS) or names_columns(rows)):
            raise UserError(f"{path} {columns_fault(header)}")
        return rows
    for number, row in numbered:
        if len(row) != len(header):
            raise UserError(f"{path} line {number} has {len(row)} columns: repair it")
    return [[row[place] for place in places] for row in rows[1:]]


def pair_columns(what: object, names: Sequence[str]) -> list[int]:
    """Return the places of both sentences and of the score; none where they are not named.

    Raises:
        UserError: two columns are named as one of them.
    """
    found = [
        [k for k, name in enumerate(names) if pattern.fullmatch(name.strip())]
        for pattern in COLUMN_NAMES
    ]
    exact = [[k for k, name in enumerate(names) if name == column] for column in PAIR_COLUMNS]
    places = [named or alike for named, alike in zip(exact, found, strict=True)]
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


def columns_fault(header: Sequence[str]) -> str:
    """Say why a first line names no columns of pairs.

    >>> columns_fault(["sentence1,sentence2,score"])
    'has one column: put tabs between columns'
    """
    if len(header) == 1:
        return "has one column: put tabs between columns"
    return f"has {len(header)} columns: name those of {', '.join(PAIR_COLUMNS)} in line 1"


def read_hub(what: str, data_root: Path | None) -> list[PairRows]:
    """The validation part chooses, the test part is reported; training pairs are not seen."""
    parts = hub.hub_parts(what, data_root)
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
    table = [["" if value is None else str(value) for value in part[name]] for name in names]
    return [list(row) for row in zip(*table, strict=True)]


READERS: dict[str, Callable[[str, Path | None], list[PairRows]]] = {
    "pairs": read_files,
    "hf": read_hub,
}


def corpus(what: str, data_root: Path | None) -> tuple[list[str], int, str]:
    """Lines of the hub's training part, as `corpus_sentences` gives those of a file."""
    with own.reading_own(SOURCES[-1], f"hf:{what}"):
        part = next(iter(hub.hub_parts(what, data_root).values()))
        name = text_column(what, part)
        return sentences_of(f"hf:{what}", [str(text or "") for text in part[name]])


def text_column(what: str, part: "datasets.Dataset") -> str:
    """Return the name of the column of sentences.

    Raises:
        UserError: there is none.
    """
    name = next((name for name in TEXTS if name in part.column_names), None)
    if name is None:
        raise UserError(f"hf:{what} has no column text or sentence to train on")
    return name
