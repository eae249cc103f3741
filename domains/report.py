"""What a data set holds as it was read: sizes, equal samples, and what is probably wrong."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self
from unicodedata import normalize

import numpy as np

from contrastbench.domains.recipe import Recipe

Array = np.ndarray[Any, np.dtype[Any]]
Numbers = Sequence[int] | Array
Draws = Iterable[tuple[Numbers, Numbers]]  # of training and test samples
TOLD_SHARE = 1.0  # percent of test samples, or of all, from which equal ones are told of
WRONG_SHARE = 10.0  # percent of them from which data are probably not as they are meant
FEW = 3  # names that a line has
MAX_LINES = 5
MAX_CLASSES = 100  # whose counts a record has
NO_CLASS = re.compile("(?i)nan|null|n[./]?a[.]?|<na>|nat|missing|unknown|unlabell?ed|[?]|")


class Counted(int):
    """A count that knows the first place; a record holds the number."""

    first: str

    def __new__(cls, count: int, first: object = "") -> Self:
        """Return the count with its place."""
        made = super().__new__(cls, count)
        made.first = str(first)
        return made


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

    def text(self, samples: str, classes: bool = True) -> str:
        """Return the counts in words; empty if there is little to tell.

        Args:
            samples: what they are.
            classes: whether they have classes, or scores that people gave.
        """
        repeated, conflicts = (100 * n / self.samples for n in (self.repeated, self.conflicts))
        if max(self.share, repeated) < TOLD_SHARE:
            return ""
        known, label = ("a training one", "class") if classes else ("one to choose by", "score")
        tested = f"{self.share:.1f} % of test {samples} equal {known}"
        other = f", {conflicts:.1f} % one of another {label}" * bool(self.conflicts)
        bounded = classes and self.conflicts and self.ceiling < 99.95
        best = f" (at best {self.ceiling:.1f} % right)" * bool(bounded)
        return f"{tested}; {repeated:.1f} % of all equal another{other}{best}"


def count_twins(keys: Iterable[Hashable], labels: Sequence[float] | Array, draws: Draws) -> Twins:
    """Count the samples that equal others.

    Args:
        keys: of each sample; those of equal samples are equal.
        labels: the class of each.
        draws: numbers of training and of test samples, once or for each fold.

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


@dataclass(frozen=True)
class DataReport:
    """What a data set holds as it was read."""

    samples: str = "samples"  # what they are
    parts: Mapping[str, int] = field(default_factory=dict)  # samples of each
    classes: Mapping[str, int] = field(default_factory=dict)  # samples of each
    features: Mapping[str, int] = field(default_factory=dict)  # how many of each kind
    twins: Twins | None = None
    # what was left out, converted or guessed, and what is probably wrong: counts or names
    notes: Mapping[str, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False  # whether it is a user's own, whose sizes nobody has checked

    @property
    def wrong(self) -> bool:
        """Return whether something is probably not as it is meant."""
        return bool(self.doubts or (self.twins and self.twins.wrong))

    def lines(self, name: str, most: int = MAX_LINES, always: bool = False) -> list[str]:
        """Return lines for people, none where there is nothing to tell unless `always`."""
        twins = self.twins.text(self.samples, self.samples != "pairs") if self.twins else ""
        facts = [f"probably wrong: {noted(*pair)}" for pair in self.doubts.items()]
        facts += ["probably wrong: " * bool(self.twins and self.twins.wrong) + twins] * bool(twins)
        facts += [noted(*pair) for pair in self.notes.items()]
        if not (facts or self.own or always):
            return []
        head, room = f"{name}: {self.sizes}", most - 1
        if len(facts) > room:
            facts[room - 1 :] = [f"{len(facts) - room + 1} more: bench data check says all"]
        return [head, *(f"  {line}" for line in facts)]

    @property
    def sizes(self) -> str:
        """Return the sizes in words."""
        parts = ", ".join(f"{count:,} {name}" for name, count in self.parts.items())
        total = f"{sum(self.parts.values()):,} {self.samples}"
        kinds = ", ".join(f"{kind}: {count:,}" for kind, count in self.features.items() if count)
        shown = total + f" ({parts})" * (len(self.parts) > 1)
        return "; ".join(filter(None, (shown, classes_text(self.classes), kinds)))

    def as_json(self) -> dict[str, Any]:
        """Return the report for the record, whose notes stand there already."""
        facts = asdict(self)
        counts = [*self.classes.values()]
        if len(counts) > MAX_CLASSES:
            ends = {"smallest": min(counts), "largest": max(counts)}
            facts["classes"] = {"number": len(counts), **ends}
        return {key: facts[key] for key in ("parts", "classes", "features", "twins") if facts[key]}


def classes_text(classes: Mapping[str, int]) -> str:
    """Return classes in words.

    >>> classes_text({"no": 2, "yes": 1}), classes_text(dict.fromkeys("abcd", 5))
    ('2 classes (no 2, yes 1)', '4 classes of 5')
    """
    if not classes:
        return ""
    low, high = min(classes.values()), max(classes.values())
    if len(classes) > FEW:
        return f"{len(classes)} classes of {low:,}" + f" to {high:,}" * (high > low)
    each = ", ".join(f"{name} {count:,}" for name, count in classes.items())
    return f"{len(classes)} classes ({each})"


def noted(what: str, value: Any) -> str:
    """Return a note in words.

    >>> noted("grey", Counted(2, "a.png")), noted("empty columns", ["a", "b"])
    ('grey: 2 (first: a.png)', 'empty columns: a, b')
    """
    if isinstance(value, Mapping):
        value = [f"{name} {count}" for name, count in value.items()]
    if isinstance(value, list | tuple):
        more = f" and {len(value) - FEW} more" if len(value) > FEW else ""
        return f"{what}: {', '.join(map(str, value[:FEW]))}{more}"
    first = value.first if isinstance(value, Counted) else ""
    return f"{what}: {value}" + f" (first: {first})" * bool(first)


def class_counts(names: Sequence[str], labels: Iterable[int]) -> dict[str, int]:
    """Return how many samples each class has, by its name."""
    counts = np.bincount(np.fromiter(labels, dtype=np.int64), minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def of_test(parts: Mapping[str, int]) -> tuple[Array, Array]:
    """Return the numbers of the samples of the first and of the last part.

    >>> [numbers.tolist() for numbers in of_test({"train": 2, "validation": 1, "test": 2})]
    [[0, 1], [3, 4]]
    """
    sizes = [*parts.values()]
    samples = np.arange(sum(sizes))
    return samples[: sizes[0]], samples[len(samples) - sizes[-1] :]


def small_batch(size: int, recipe: Recipe) -> dict[str, int]:
    """Return the note on a training whose samples are fewer than its batches should have."""
    note = f"samples of a batch, all there are in place of batch_size={recipe.batch_size}"
    return {note: size} if size < recipe.batch_size else {}


def class_doubts(classes: Sequence[str]) -> dict[str, list[str]]:
    """Return which names of classes are probably not as they are meant.

    >>> class_doubts(["no", "NaN", "yes"])
    {'classes that may stand for what is missing': ['NaN']}
    """
    doubts = {
        "classes that look alike": look_alikes(classes),
        "classes that may stand for what is missing": [*filter(NO_CLASS.fullmatch, classes)],
    }
    return {doubt: names for doubt, names in doubts.items() if names}


def look_alikes(words: Iterable[str]) -> list[str]:
    """Return the words of which another differs in case, blanks, .0 or how accents are encoded.

    >>> look_alikes(["no", "Yes", "yes ", "1", "1.0"])
    ["'Yes'", "'yes '", "'1'", "'1.0'"]
    """
    looks = {
        word: " ".join(normalize("NFC", word).casefold().split()).removesuffix(".0")
        for word in words
    }
    counts = Counter(looks.values())
    return [ascii(word) for word, look in looks.items() if counts[look] > 1]
