"""Sentence data: SentEval's folder of scored pairs, and text files to train on."""

import gzip
import hashlib
import io
import math
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from unicodedata import category, normalize

from contrastbench.domains import own
from contrastbench.domains.declaration import Dataset
from contrastbench.domains.download import fetch_file, file_sha256, local_file
from contrastbench.domains.reading import (
    UNPACKED,
    check_kind,
    contents,
    doubles,
    is_number,
    reading,
    refuse,
    unpacked,
)
from contrastbench.domains.sentence.datasets import CORPORA, DATASETS, SENTEVAL_URL
from contrastbench.errors import UserError

T = TypeVar("T")
STS_YEARS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),  # SMT is licensed and in nobody's table
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
DECLARED_ROWS = {name: rows for about in DATASETS.values() for name, rows in about.rows.items()}
OTHER_FIX = "delete it, or train on it by its name: --recipe corpus={}"
SENTEVAL_FIX = f"delete it and get {SENTEVAL_URL} again"


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences with the similarity that people gave them."""

    name: str
    first: list[str]
    second: list[str]
    gold: list[float]
    unscored: int = 0  # rows without a gold score, left out above

    def few(self, limit: int) -> "Pairs":
        """At most so many of them, from all over the set."""
        step = slice(None, None, -(-len(self.gold) // limit) or 1)
        return replace(self, first=self.first[step], second=self.second[step], gold=self.gold[step])

    def __len__(self) -> int:
        return len(self.gold)


Negatives = Mapping[str, list[str]]  # what is near the first sentence of a row and no match of it
ROW_NAMES = re.compile(
    "(?i)anchor|query|question|pos(?:itive)?|answer|passage|sent_?[01]|text_?[01]"
)
NEGATIVE = re.compile("(?i)(?:hard[_ ]?)?neg(?:ative)?s?(?:[_ ]?[0-9]+)?")


class Corpus(NamedTuple):
    """Sentences to train on: rows that belong together, or single sentences."""

    rows: list[list[str]]
    empty_lines: int  # left out above
    sha256: str  # of the lines
    scored: int = 0  # rows left out above, which hold a scored sentence
    negatives: Negatives = MappingProxyType({})  # hard ones; none, or one at least of each row


def without_sentences(corpus: Corpus, compared: Iterable[str]) -> Corpus:
    """Return the corpus without rows that hold a compared sentence, but for case and signs.

    >>> rows = [["A dog.", "Two cats."], ["A bird.", "Birds."], ["Rain.", "It rains."]]
    >>> without_sentences(Corpus(rows, 0, ""), ["a dog"]).rows
    [['A bird.', 'Birds.'], ['Rain.', 'It rains.']]
    """
    if not (known := set(map(words_of, compared))):
        return corpus
    kept = [row for row in corpus.rows if known.isdisjoint(map(words_of, row))]
    if len(kept) == len(corpus.rows):
        return corpus
    fault = " training rows hold no sentence that is scored: give other training sentences"
    refuse(len(kept), (len(kept) < 2, fault))
    digest = hashlib.sha256(repr((corpus.sha256, kept)).encode()).hexdigest()
    return corpus._replace(rows=kept, sha256=digest, scored=len(corpus.rows) - len(kept))


def words_of(sentence: str) -> str:
    """Return the words of a sentence in small letters, one space between them, without accents.

    >>> words_of("Caf\u00e9, olé!")
    'cafe ole'
    """
    text = sentence.lower()
    if not text.isascii():
        text = "".join(x for x in normalize("NFD", text) if category(x) not in ("Mn", "Cf"))
    return " ".join(re.findall(r"\w+", text))


class TextFiles:
    """Text files of a folder or a tar archive, none extracted, and the sha256 of what was read."""

    def __init__(self, root: Path) -> None:
        self.root, self.sha256, self.packed = root, hashlib.sha256(), root.is_file()
        if self.packed:
            with reading(root, SENTEVAL_FIX), tarfile.open(root) as tar:
                self.members = [member for member in tar if member.isfile()]
                if several := doubles(member.name for member in self.members):
                    raise ValueError(f"two members are named {several[0]}")

    def read(self, name: str) -> bytes:
        if self.packed:
            return self.of_archive(name)
        data = contents(self.root / name)
        if not name.endswith(".gz"):
            return data
        with reading(self.root / name, "replace it"), gzip.open(io.BytesIO(data)) as file:
            return unpacked(file, self.root / name)

    def of_archive(self, name: str) -> bytes:
        """The bytes of the file of that name, in whichever folder of the archive it lies."""
        matches = [member for member in self.members if f"/{member.name}".endswith(f"/{name}")]
        with reading(f"{self.root}: {name}", SENTEVAL_FIX), tarfile.open(self.root) as tar:
            file = tar.extractfile(matches[0]) if matches else None
            if file is None or matches[0].size > UNPACKED:
                raise ValueError("it is missing" if file is None else "it is too large")
            return file.read()

    def lines(self, name: str, encoding: str = "utf-8-sig") -> list[str]:
        path = self.root / name
        data = self.read(name)
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            number = data[: error.start].count(b"\n") + 1
            raise UserError(
                f"{path} line {number} is not UTF-8 ({error.reason}): convert or remove it"
            ) from None
        self.sha256.update(f"{name}\0{len(data)}\0".encode() + data)
        ends = "\n" if "\n" in text else "\r"  # as an old Mac writes it
        lines = [line.removesuffix("\r") for line in text.split(ends)]
        return lines[:-1] if lines[-1] == "" else lines


def senteval_path(about: Dataset, data_root: Path | None) -> Path:
    if data_root:
        for place in ("senteval/downstream", "downstream", "."):
            if (data_root / place / "STS").is_dir():
                return data_root / place
        if (data_root / "senteval.tar").is_file():
            return data_root / "senteval.tar"
    return fetch_file(about)


def sts_sets(read: TextFiles) -> dict[str, list[Pairs]]:
    sets = {
        year: [year_pairs(read, year, subset) for subset in subsets]
        for year, subsets in STS_YEARS.items()
    }
    sets |= {"STSB": [stsb_pairs(read, "test")], "SICKR": [sick_pairs(read)]}
    for name, parts in sets.items():
        check_size(read.root, name, sum(map(len, parts)))
    return sets


def check_size(root: Path, name: str, rows: int) -> None:
    known = DECLARED_ROWS.get(name, rows)
    fault = f": {name} has {rows} rows, not {known}: get {SENTEVAL_URL} again"
    refuse(root, (rows != known, fault))


def rejoined(sentences: Iterable[str]) -> list[str]:
    """Sentences with single spaces between their tokens, as SentEval hands them to an encoder.

    >>> rejoined(["a  b "])
    ['a b']
    """
    return [" ".join(sentence.split()) for sentence in sentences]


def year_pairs(read: TextFiles, year: str, subset: str) -> Pairs:
    """A subset of STS12-16: sentences and gold scores stand in two files."""
    name = f"STS/{year}-en-test/STS.{{}}.{subset}.txt"
    sentences, gold = read.lines(name.format("input")), read.lines(name.format("gs"))
    path = read.root / name.format("gs")
    counts = f"{len(sentences)} pairs for {len(gold)} scores"
    unlike = len(sentences) != len(gold)
    refuse(path, (unlike, f" is damaged: {counts}; get {SENTEVAL_URL} again"))
    rows = [[*line.split("\t")[:2], score] for line, score in zip(sentences, gold, strict=True)]
    return scored_pairs(path, subset, numbered(path, rows))


def stsb_pairs(read: TextFiles, split: str) -> Pairs:
    # tab-separated, whatever its name says; quotes are text
    name = f"STS/STSBenchmark/sts-{split}.csv"
    rows = [[*line.split("\t")[5:7], (line.split("\t") + [""] * 5)[4]] for line in read.lines(name)]
    return scored_pairs(read.root / name, split, numbered(read.root / name, rows))


def sick_pairs(read: TextFiles) -> Pairs:
    name = "SICK/SICK_test_annotated.txt"
    rows = [line.split("\t")[1:4] for line in read.lines(name)[1:]]
    return scored_pairs(read.root / name, "test", numbered(read.root / name, rows, 2))


def scored_pairs(
    what: object, name: str, rows: Iterable[tuple[str, Sequence[str]]], fix: str = SENTEVAL_FIX
) -> Pairs:
    """Pairs of rows (first, second, gold score), those without a score counted and left out."""
    scored, unscored = [], 0
    for where, row in rows:
        refuse(where, (len(row) != 3, f" has a damaged pair, {row}: {fix}"))
        if not row[2].strip():
            unscored += 1
            continue
        finite = is_number(row[2]) and math.isfinite(float(row[2]))
        refuse(where, (not finite, f" has the score {row[2]!r}, which is no finite number: {fix}"))
        scored.append((*row[:2], float(row[2])))
    few = f" has {len(scored)} pairs with a score: there is nothing to rank"
    refuse(what, (len(scored) < 2, few))
    first_, second_, gold_ = zip(*scored, strict=True)
    return Pairs(name, rejoined(first_), rejoined(second_), list(gold_), unscored)


def numbered(path: object, rows: Iterable[T], begin: int = 1) -> Iterator[tuple[str, T]]:
    return ((f"{path} line {number}", row) for number, row in enumerate(rows, begin))


def corpus_file(name: str, data_root: Path | None) -> Path:
    declared = CORPORA.get(name)
    path = local_file(declared, data_root) if declared else None
    another = bool(declared and path and file_sha256(path) != declared.sha256)
    fault = f" is not SimCSE's file (its sha256 is another): {OTHER_FIX.format(path)}"
    refuse(path, (another, fault))
    try:
        return path or (fetch_file(declared) if declared else own.find_path(name, data_root))
    except UserError as error:
        others = ", ".join(sorted({*CORPORA} - {name}))
        fix = f"or train on {others}, or on lines of your own: --recipe corpus=text:FILE"
        raise UserError(f"{error}; {fix}") from None


def read_corpus(name: str, data_root: Path | None) -> Corpus:
    """Read a file to train on: `pairs:FILE`, or a name as `corpus_file` takes it."""
    path = corpus_file(name.removeprefix("pairs:"), data_root)
    return (rows_of if name.startswith("pairs:") else sentences_of)(path, lines_of(path))


def lines_of(path: Path) -> list[str]:
    if path.suffix != ".gz":
        check_kind(path, "a text", "write a line for each, with tabs between columns if it has any")
    return TextFiles(path.parent).lines(path.name)


def sentences_of(name: object, lines: Sequence[str]) -> Corpus:
    return corpus_of(name, [[line] for line in lines if line.strip()], lines, "sentences")


def rows_of(name: object, lines: list[str]) -> Corpus:
    """Return rows of sentences that belong together, with tabs between them.

    A sentence that a row has twice counts once. A first line such as `anchor positive negative`
    names the columns.
    """
    split, negatives = named_columns(name, lines)
    distinct = [[*dict.fromkeys(filter(None, row))] for row in split]
    first = 1 + len(lines) - len(split)
    lonely = [number for number, row in enumerate(distinct, first) if len(row) == 1]
    fix = "give it a second, after a tab, or remove it"
    refuse(name, (lonely, f" line {{}} has one sentence: {fix}"))
    corpus = corpus_of(name, [row for row in distinct if row], lines, "rows")
    return corpus._replace(empty_lines=corpus.empty_lines + 1 - first, negatives=negatives)


def named_columns(name: object, lines: Sequence[str]) -> tuple[list[list[str]], Negatives]:
    r"""Return the rows of lines without a first line of names and hard negatives, and these.

    >>> named_columns("a.tsv", ["anchor\tpositive\tnegative", "Hi.\tHello!\tGo!"])
    ([['Hi.', 'Hello!']], {'Hi.': ['Go!']})
    """
    rows = [[*map(str.strip, line.split("\t"))] for line in lines]
    names = [*filter(None, rows[0])] if rows else []
    if len(names) < 2 or not all(ROW_NAMES.fullmatch(x) or NEGATIVE.fullmatch(x) for x in names):
        return rows, {}
    places = [place for place, word in enumerate(rows.pop(0)) if NEGATIVE.fullmatch(word)]
    negatives: dict[str, list[str]] = {}
    for number, row in enumerate(rows, 2):
        found = [row.pop(place) for place in reversed(places) if row[place:]]
        lacking = places and any(row) and not any(found)
        refuse(name, (lacking, f" line {number} has no negative: write one, or remove the line"))
        for negative in filter(None, found):
            negatives.setdefault(next(filter(None, row), ""), []).append(negative)
    return rows, negatives


def corpus_of(name: object, rows: list[list[str]], lines: Sequence[str], what: str) -> Corpus:
    refuse(name, (len(rows) < 2, f" has {len(rows)} {what}: give at least two"))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Corpus(rows, len(lines) - len(rows), digest)


def side_by_side(paths: Sequence[Path]) -> Corpus:
    columns = [lines_of(path) for path in paths]
    each = zip(paths, columns, strict=True)
    counts = ", ".join(f"{path} {len(lines)}" for path, lines in each)
    unlike = len({*map(len, columns)}) > 1
    refuse("files of one corpus", (unlike, f" have unlike numbers of lines: {counts}"))
    return rows_of(paths[0], ["\t".join(row) for row in zip(*columns, strict=True)])


def check_text(sentences: Iterable[str]) -> None:
    """Raise for what is no text: lone surrogates, which no tokenizer can read."""
    for sentence in sentences:
        try:
            sentence.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"sentence {sentence[:40]!a} has a lone surrogate at {error.start}: it is no text"
            ) from None
