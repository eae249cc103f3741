"""SentEval's transfer tasks: logistic regression on frozen embeddings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from contrastbench.domains.base import Evaluation
from contrastbench.domains.progress import Progress
from contrastbench.domains.sentence.data import Reader
from contrastbench.domains.sentence.encoder import Embeddings
from contrastbench.losses.errors import UserError

Array = np.ndarray[Any, np.dtype[Any]]
C_GRID = tuple(2.0**k for k in range(-2, 4))
FOLDS = 10
TWO_FILES = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}


@dataclass(frozen=True)
class Split:
    """Sentences, or pairs of them, with their classes."""

    first: list[str]
    y: list[str]
    second: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """A task with official splits, or with folds over `train` where there is no test part."""

    name: str
    train: Split
    test: Split | None = None
    dev: Split | None = None

    @property
    def sentences(self) -> list[str]:
        """All that must be encoded."""
        return [s for split in (self.train, self.test, self.dev) if split for s in split.first + split.second]


def tasks(read: Reader) -> list[Task]:
    """The seven tasks of SentEval's folder."""
    folds = [Task(name, two_files(read, *files)) for name, files in TWO_FILES.items()]
    sst = Task("SST2", *(sst_split(read, part) for part in ("train", "test", "dev")))
    trec = Task("TREC", *(trec_split(read, part) for part in ("train_5500", "TREC_10")))
    mrpc = Task("MRPC", *(mrpc_split(read, part) for part in ("train", "test")))
    return [*folds, sst, trec, mrpc]


def two_files(read: Reader, positive: str, negative: str) -> Split:
    """One file for each class."""
    first, second = read.lines(positive), read.lines(negative)
    return Split(first + second, ["1"] * len(first) + ["0"] * len(second))


def sst_split(read: Reader, part: str) -> Split:
    """Sentence, tab, class."""
    name = f"SST/binary/sentiment-{part}"
    sentences, y = cut(read, name, [line.rsplit("\t", 1) for line in read.lines(name)], 2)
    return Split(sentences, y)


def trec_split(read: Reader, part: str) -> Split:
    """Class, colon, finer class, space, sentence."""
    name = f"TREC/{part}.label"
    y, sentences = cut(read, name, [line.split(" ", 1) for line in read.lines(name, "latin-1")], 2)
    return Split(sentences, [label.split(":")[0] for label in y])


def mrpc_split(read: Reader, part: str) -> Split:
    """A head line, then class, two numbers, two sentences."""
    name = f"MRPC/msr_paraphrase_{part}.txt"
    y, _, _, first, second = cut(read, name, [line.split("\t") for line in read.lines(name)[1:]], 5)
    return Split(first, y, second)


def cut(read: Reader, name: str, rows: list[list[str]], width: int) -> list[list[str]]:
    """Columns of rows."""
    wrong = [i for i, row in enumerate(rows, 1) if len(row) != width]
    if wrong or not rows:
        raise UserError(f"{read.root / name} is damaged: row {(wrong or [0])[0]} does not have {width} columns")
    return [list(column) for column in zip(*rows, strict=True)]


def evaluate(embeddings: Embeddings, tasks: list[Task], seed: int) -> Evaluation:
    """Accuracy of each task in percent, and their average."""
    metrics, details = {}, {}
    with Progress(len(tasks), "scoring tasks") as progress:
        for task in tasks:
            scores = folds(embeddings, task, seed) if task.test is None else [official(embeddings, task, seed)]
            metrics[task.name] = float(np.mean([score["accuracy"] for score in scores]))
            details[task.name] = scores
            progress.step(task.name)
    return Evaluation({**metrics, "avg": float(np.mean(list(metrics.values())))}, "avg", {"tasks": details})


def folds(embeddings: Embeddings, task: Task, seed: int) -> list[dict[str, float]]:
    """Ten stratified folds."""
    x, y = features(embeddings, task.train), np.array(task.train.y)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
    return [score(x[train], y[train], x[test], y[test], *held_out(x[train], y[train], seed)) for train, test in splits]


def official(embeddings: Embeddings, task: Task, seed: int) -> dict[str, float]:
    """Train and test part as they are; C is chosen on the development part, or on a held-out tenth."""
    assert task.test is not None, "a task with folds"
    x, y = features(embeddings, task.train), np.array(task.train.y)
    test = features(embeddings, task.test), np.array(task.test.y)
    if task.dev is None:
        return score(x, y, *test, *held_out(x, y, seed))
    return score(x, y, *test, x, y, features(embeddings, task.dev), np.array(task.dev.y))


def held_out(x: Array, y: Array, seed: int) -> Iterator[Array]:
    """A training part without a tenth, and that tenth, to choose C by."""
    x_fit, x_dev, y_fit, y_dev = train_test_split(x, y, test_size=0.1, random_state=seed, stratify=y)
    return iter((x_fit, y_fit, x_dev, y_dev))


def score(
    x: Array, y: Array, x_test: Array, y_test: Array, x_fit: Array, y_fit: Array, x_dev: Array, y_dev: Array
) -> dict[str, float]:
    """Accuracy on the test part with the C that does best on the development part; F1 of two classes beside it."""
    c = max(C_GRID, key=lambda c: (fit(x_fit, y_fit, c).score(x_dev, y_dev), -c))
    found = fit(x, y, c).predict(x_test)
    result = {"accuracy": 100 * float(np.mean(found == y_test)), "C": c}
    if set(y) == {"0", "1"}:
        result["f1"] = 100 * float(f1_score(y_test, found, pos_label="1"))
    return result


def fit(x: Array, y: Array, c: float) -> Any:
    """Logistic regression."""
    return LogisticRegression(C=c, max_iter=1000, tol=1e-3).fit(x, y)


def features(embeddings: Embeddings, split: Split) -> Array:
    """(n, d) embeddings; for pairs |u - v| and u * v side by side (n, 2d)."""
    u = embeddings.of(split.first).numpy()
    if not split.second:
        return u
    v = embeddings.of(split.second).numpy()
    return np.concatenate([np.abs(u - v), u * v], axis=1)
