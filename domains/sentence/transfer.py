"""SentEval's transfer tasks: logistic regression on frozen embeddings."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from contrastbench.domains.base import Evaluation
from contrastbench.domains.progress import Progress
from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import Array
from contrastbench.domains.sentence.data import TextFiles, check_size, rejoined
from contrastbench.domains.sentence.encoder import Embeddings

InnerFolds = list[tuple[Array, Array]]
C_GRID = tuple(2.0**k for k in range(-2, 4))
SPLIT_C_GRID = tuple(2.0**k for k in range(-1, 6))  # of tasks with a test and no development part
FOLDS = 10
TWO_FILES = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}


@dataclass(frozen=True)
class Examples:
    """Sentences, or pairs of them, with their classes."""

    first: list[str]
    y: list[str]
    second: list[str] = field(default_factory=list)

    def few(self, limit: int) -> "Examples":
        """Return about `limit` examples, equally many a class, but enough for nested folds."""
        each = max(limit // len(set(self.y)), 2 * FOLDS)
        places: dict[str, list[int]] = {}
        for i, label in enumerate(self.y):
            places.setdefault(label, []).append(i)
        kept = sorted(i for some in places.values() for i in some[:each])
        first, y, second = (
            [column[i] for i in kept] if column else []
            for column in (self.first, self.y, self.second)
        )
        return Examples(first, y, second)


@dataclass(frozen=True)
class TransferTask:
    """A task with official splits, or with folds over `train` where there is no test part."""

    name: str
    train: Examples
    test: Examples | None = None
    dev: Examples | None = None

    def few(self, limit: int) -> "TransferTask":
        test, dev = (part.few(limit) if part else None for part in (self.test, self.dev))
        return TransferTask(self.name, self.train.few(limit), test, dev)

    @property
    def grid(self) -> tuple[float, ...]:
        return SPLIT_C_GRID if self.test and not self.dev else C_GRID

    @property
    def parts(self) -> list[Examples]:
        return [part for part in (self.train, self.test, self.dev) if part]

    @property
    def sentences(self) -> list[str]:
        return [s for part in self.parts for s in part.first + part.second]


def tasks(read: TextFiles) -> list[TransferTask]:
    folds = [TransferTask(name, two_files(read, *files)) for name, files in TWO_FILES.items()]
    sst = TransferTask("SST2", *(sst_split(read, part) for part in ("train", "test", "dev")))
    trec = TransferTask("TREC", *(trec_split(read, part) for part in ("train_5500", "TREC_10")))
    mrpc = TransferTask("MRPC", *(mrpc_split(read, part) for part in ("train", "test")))
    for task in (every := [*folds, sst, trec, mrpc]):
        check_size(read.root, task.name, sum(len(part.y) for part in task.parts))
    return every


def two_files(read: TextFiles, positive: str, negative: str) -> Examples:
    first, second = read.lines(positive), read.lines(negative)
    return Examples(rejoined(first + second), ["1"] * len(first) + ["0"] * len(second))


def sst_split(read: TextFiles, part: str) -> Examples:
    """Read one part of SST: lines of sentence, tab, class."""
    name = f"SST/binary/sentiment-{part}"
    sentences, y = cut_columns(read, name, [line.rsplit("\t", 1) for line in read.lines(name)], 2)
    return Examples(rejoined(sentences), y)


def trec_split(read: TextFiles, part: str) -> Examples:
    """Class, colon, finer class, space, sentence."""
    name = f"TREC/{part}.label"
    lines = [line.split(" ", 1) for line in read.lines(name, "latin-1")]
    y, sentences = cut_columns(read, name, lines, 2)
    return Examples(rejoined(sentences), [label.split(":")[0] for label in y])


def mrpc_split(read: TextFiles, part: str) -> Examples:
    """A head line, then class, two numbers, two sentences."""
    name = f"MRPC/msr_paraphrase_{part}.txt"
    lines = [line.split("\t") for line in read.lines(name)[1:]]
    y, _, _, first, second = cut_columns(read, name, lines, 5)
    return Examples(rejoined(first), y, rejoined(second))


def cut_columns(read: TextFiles, name: str, rows: list[list[str]], width: int) -> list[list[str]]:
    wrong = [i for i, row in enumerate(rows, 1) if len(row) != width]
    fault = f" is damaged: row {(wrong or [0])[0]} does not have {width} columns"
    refuse(read.root / name, (wrong or not rows, fault))
    return [list(column) for column in zip(*rows, strict=True)]


def evaluate_transfer(embeddings: Embeddings, tasks: list[TransferTask], seed: int) -> Evaluation:
    """Accuracy of each task in percent, and their average.

    SentEval's protocol with scikit-learn: logistic regression on embeddings as they are, C in
    2^-2..2^3 (TREC and MRPC: 2^-1..2^5) by the mean accuracy of ten folds of the training part
    (SST2: on its development part), ties to the smaller C; then fitted on the whole training part
    and scored once. MR, CR, SUBJ and MPQA are the mean of ten outer folds.
    """
    details: dict[str, list[dict[str, float]]] = {task.name: [] for task in tasks}
    with Progress(sum(FOLDS if task.test is None else 1 for task in tasks), "scoring") as progress:
        for task in tasks:
            x = np.concatenate([features(embeddings, part) for part in task.parts])
            y = np.array([y for part in task.parts for y in part.y])
            for train, test, inner in splits(task, y, seed):
                details[task.name].append(accuracy_and_f1(x, y, train, test, inner, task.grid))
                progress.step(task.name)
    right = {name: [score["accuracy"] for score in scores] for name, scores in details.items()}
    metrics = {name: float(np.mean(accuracies)) for name, accuracies in right.items()}
    average = float(np.mean(list(metrics.values())))
    return Evaluation({**metrics, "avg": average}, "avg", details={"tasks": details})


def splits(task: TransferTask, y: Array, seed: int) -> Iterator[tuple[Array, Array, InnerFolds]]:
    """Training rows, test rows, and the pairs of rows to fit and to score a C on."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)

    def inside(rows: Array) -> InnerFolds:
        return [(rows[fit], rows[held_out]) for fit, held_out in folds.split(rows, y[rows])]

    if task.test is None:
        yield from ((train, test, inside(train)) for train, test in folds.split(y, y))
    else:
        ends = np.cumsum([len(task.train.y), len(task.test.y)])
        train, test, dev = np.split(np.arange(len(y)), ends)
        yield train, test, [(train, dev)] if task.dev else inside(train)


def accuracy_and_f1(
    x: Array, y: Array, train: Array, test: Array, inner: InnerFolds, grid: tuple[float, ...]
) -> dict[str, float]:
    """Accuracy on the test rows with the C that is best inside the training rows; F1 of two."""
    mean = np.mean([path_accuracies(x, y, *rows, grid) for rows in inner], axis=0)
    c = grid[int(mean.round(4).argmax())]  # SentEval compares percents of two decimals
    predicted = classifier(y).set_params(C=c).fit(x[train], y[train]).predict(x[test])
    result = {"accuracy": 100 * float(np.mean(predicted == y[test])), "C": c}
    if set(y) == {"0", "1"}:
        result["f1"] = 100 * float(f1_score(y[test], predicted, pos_label="1"))
    return result


def path_accuracies(
    x: Array, y: Array, fit: Array, held_out: Array, grid: tuple[float, ...]
) -> list[float]:
    """Return the accuracy at each C; every fit starts from the one before."""
    model, x_fit, x_held_out = classifier(y), x[fit], x[held_out]
    return [model.set_params(C=c).fit(x_fit, y[fit]).score(x_held_out, y[held_out]) for c in grid]


def classifier(y: Array) -> LogisticRegression:
    """Logistic regression; Newton's method is the faster one for two classes, L-BFGS for more."""
    if len(set(y)) == 2:
        return LogisticRegression(solver="newton-cholesky", max_iter=1000, warm_start=True)
    return LogisticRegression(solver="lbfgs", max_iter=10000, tol=1e-5, warm_start=True)


def features(embeddings: Embeddings, split: Examples) -> Array:
    """(n, d) embeddings; for pairs |u - v| and u * v side by side (n, 2d)."""
    u = embeddings.of(split.first).numpy()
    if not split.second:
        return u
    v = embeddings.of(split.second).numpy()
    return np.concatenate([np.abs(u - v), u * v], axis=1)
