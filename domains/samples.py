"""Samples of any kind as a run uses them: the finder of equal ones, and draws of their parts."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any, Self

import numpy as np

from contrastbench.domains.reading import refuse

Array = np.ndarray[Any, np.dtype[Any]]
Numbers = Sequence[int] | Array
Draws = Iterable[tuple[Numbers, Numbers]]  # of training and test samples
Keys = Callable[[], Iterable[Hashable]]  # makes one for each sample
TOLD_SHARE = 1.0  # percent of test samples, or of all, from which equal ones are told of
WRONG_SHARE = 10.0  # percent of them from which data are probably not as they are meant


class Counted(int):
    """A count that knows the first place; a record holds the number."""

    first: str

    def __new__(cls, count: int, first: object = "") -> Self:
        made = super().__new__(cls, count)
        made.first = str(first)
        return made

    @classmethod
    def of(cls, places: Sequence[object]) -> Self:
        return cls(len(places), *places[:1])


@dataclass(frozen=True)
class Samples:
    """Samples as a run uses them: all that a rule on data asks, whatever they are.

    A domain gives them, and gets a report for it. What several domains can ask of their data is a
    rule of `report.RULES`, on these samples; what one can ask of its own is a rule beside its data.
    """

    what: str = "samples"  # what they are, such as rows
    parts: Mapping[str, int] = field(default_factory=dict)  # samples of each, training first
    # of each sample the number of its class, or where there are no names of classes its score
    labels: Sequence[float] | Array = ()
    classes: Sequence[str] = ()  # their names
    keys: Keys | None = None  # those of equal samples are equal
    near: Keys | None = None  # the same of nearly equal ones
    groups: Sequence[Hashable] | Array = ()  # of each sample, such as its patient
    draws: Draws | None = None  # one for each fold; None: the last part is tested
    features: Mapping[str, int] = field(default_factory=dict)  # how many of each kind
    # what was left out, converted or guessed, and what is probably wrong: counts or names
    notes: Mapping[str, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False  # whether they are a user's own, whose sizes nobody has checked

    def twins(self, keys: Keys | None) -> "Twins | None":
        """Count the samples of equal keys; None: they cannot be compared."""
        if keys is None:
            return None
        return count_twins(keys(), self.labels, self.draws or [of_test(self.parts)])


@dataclass(frozen=True)
class Twins:
    """How many samples equal others."""

    tested: int  # test samples; where folds turn, all samples
    trained_on: int  # test samples that equal a training sample
    samples: int
    repeated: int  # samples that equal another one
    conflicts: int  # samples that equal one of another class
    ceiling: float  # percent right of who gives equal samples their most frequent class

    @property
    def share(self) -> float:
        """Return the percent of test samples that equal a training sample."""
        return 100 * self.trained_on / max(1, self.tested)

    @property
    def wrong(self) -> bool:
        """Return whether test samples are probably training samples by mistake."""
        return self.share >= WRONG_SHARE

    def text(self, samples: str, classes: bool = True, equal: str = "equal") -> str:
        """Return the counts in words; empty if there is little to tell."""
        repeated, conflicts = (100 * n / self.samples for n in (self.repeated, self.conflicts))
        if max(self.share, repeated) < TOLD_SHARE:
            return ""
        known, label = ("a training one", "class") if classes else ("one to choose by", "score")
        tested = f"{self.share:.1f} % of test {samples} {equal} {known}"
        other = f", {conflicts:.1f} % one of another {label}" * bool(self.conflicts)
        bounded = classes and self.conflicts and self.ceiling < 99.95
        best = f" (at best {self.ceiling:.1f} % right)" * bool(bounded)
        return f"{tested}; {repeated:.1f} % of all {equal} another{other}{best}"


def count_twins(keys: Iterable[Hashable], labels: Sequence[float] | Array, draws: Draws) -> Twins:
    """Count the samples that equal others: their keys are equal.

    Draws are numbers of training and of test samples, once or for each fold.

    >>> count_twins("abab", [0, 0, 1, 0], [([0, 1], [2, 3])])
    Twins(tested=2, trained_on=2, samples=4, repeated=4, conflicts=2, ceiling=75.0)
    """
    number: dict[Hashable, int] = {}
    kinds = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    _, y = np.unique(np.asarray(labels), return_inverse=True)
    pairs, sizes = np.unique(kinds * (y.max() + 1) + y.reshape(-1), return_counts=True)
    of_pair = pairs // (y.max() + 1)
    largest = np.zeros(len(number), dtype=np.int64)
    np.maximum.at(largest, of_pair, sizes)
    tested = trained_on = 0
    for train, test in draws:
        seen = np.zeros(len(number), dtype=bool)
        seen[kinds[train]] = True
        tested, trained_on = tested + len(test), trained_on + int(seen[kinds[test]].sum())
    return Twins(
        tested,
        trained_on,
        len(kinds),
        int((np.bincount(kinds)[kinds] > 1).sum()),
        int((np.bincount(of_pair)[kinds] > 1).sum()),
        100 * int(largest.sum()) / len(kinds),
    )


def chosen(names: tuple[str, ...], rows: Iterable[int]) -> tuple[str, ...]:
    """Return the names of some samples, where there are names.

    >>> chosen(("a", "b", "c"), [2, 0]), chosen((), [2, 0])
    (('c', 'a'), ())
    """
    return tuple(names[row] for row in rows) if names else ()


def draw_folds(
    y: Array, folds: int, seed: int | None = None, groups: Sequence[str] | Array = ()
) -> Iterator[tuple[Array, Array]]:
    """Yield the numbers of each fold's training and test samples; groups stay whole.

    Folds have (n,) classes alike, and do not look at (n, tasks) answers. Without a seed there is no
    shuffle. Groups are of each sample, such as its patient; without them each is one by itself.
    """
    from sklearn import model_selection

    named = np.asarray(groups) if len(groups) else None
    kind = "Stratified" * (y.ndim == 1) + "Group" * (named is not None) + "KFold"
    if named is not None:
        count = len({*named.tolist()})
        refuse(count, (count < folds, f" groups are too few for {folds} folds: give more of them"))
        labels = np.unique(y) if y.ndim == 1 else ()
        alone = [f"class number {k}" for k in labels if len({*named[y == k]}) < 2]
        refuse("groups: ", (alone, "{} is in one alone, for training or for a test: leave it out"))
    folded = getattr(model_selection, kind)(folds, shuffle=seed is not None, random_state=seed)
    yield from folded.split(y, y, named)


@contextmanager
def small_classes() -> Iterator[None]:
    """Keep scikit-learn silent on classes with fewer members than inner folds: it is said.

    Filters are the whole process's, and threads that set and reset them each on its own undo one
    another.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


def draw_share(
    y: Array, share: float, seed: int, groups: Sequence[str] | Array = ()
) -> tuple[Array, Array]:
    """Return the numbers of some samples without a drawn share, and of these; by class.

    Groups stay whole, so that the share is one of tenths at most.
    """
    from sklearn.model_selection import train_test_split

    if not len(groups):
        parts = train_test_split(range(len(y)), test_size=share, stratify=y, random_state=seed)
        return np.array(parts[0]), np.array(parts[1])
    most = max(2, min(10, len({*groups}), int(np.unique(y, return_counts=True)[1].max())))
    part = max(Fraction(share).limit_denominator(most), Fraction(1, most))
    with small_classes():
        folds = islice(draw_folds(y, part.denominator, seed, groups), part.numerator)
        drawn = np.concatenate([test for _, test in folds])
    return np.setdiff1d(np.arange(len(y)), drawn), drawn


def of_test(parts: Mapping[str, int]) -> tuple[Array, Array]:
    """Return the numbers of the samples of the first and of the last part.

    >>> [numbers.tolist() for numbers in of_test({"train": 2, "validation": 1, "test": 2})]
    [[0, 1], [3, 4]]
    """
    sizes = [*parts.values()]
    samples = np.arange(sum(sizes))
    return samples[: sizes[0]], samples[len(samples) - sizes[-1] :]
