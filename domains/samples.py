"""Samples of any kind as a run uses them: equal ones, draws of parts, and what is said of them."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any, Self, TypeVar
from unicodedata import category, normalize

import numpy as np

from contrastbench.domains.reading import is_number, refuse
from contrastbench.domains.recipe import Recipe

Array = np.ndarray[Any, np.dtype[Any]]
Numbers = Sequence[int] | Array
Draws = Iterable[tuple[Numbers, Numbers]]  # of training and test samples
Keys = Callable[[], Iterable[Hashable]]  # makes one for each sample
TOLD_SHARE = 1.0  # percent of test samples, or of all, from which equal ones are told of
WRONG_SHARE = 10.0  # percent of them from which data are probably not as they are meant
FEW = 3  # names that a line has
MAX_LINES = 5
MAX_CLASSES = 100  # whose counts a record has
LOOKS = str.maketrans("аеорсухіѕјкмнвтαοριντκ", "aeopcyxisjkmhbtaopivtk")  # of other alphabets
NO_CLASS = re.compile("(?i)nan|null|n[./]?a[.]?|<na>|nat|missing|unknown|unlabell?ed|[?]|")
Data = TypeVar("Data")
Rules = Mapping[str, Callable[[Data], Any]]  # what is found, such as names or a count, by its words
Shares = Mapping[str, tuple[str, Callable[[Data], Sequence[object]]]]  # and among which it is found


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
    rule of `RULES`, on these samples; what one can ask of its own is a rule beside its data.
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
        refuse(count, (count < folds, f" groups are too few for {folds} parts: leave groups out"))
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


def found_by(rules: Rules[Data], data: Data) -> dict[str, Any]:
    """Return what rules find in data; those that find nothing are left out.

    >>> found_by({"odd numbers": lambda x: [k for k in x if k % 2], "noughts": lambda x: 0}, [1, 2])
    {'odd numbers': [1]}
    """
    found = {words: rule(data) for words, rule in rules.items()}
    return {words: some for words, some in found.items() if some}


def by_share(rules: Shares[Data], data: Data) -> tuple[dict[str, Counted], dict[str, Counted]]:
    """Return notes and doubts: what rules find, by its share of those among which it is."""
    found = {words: find(data) for words, (_, find) in rules.items()}
    shares = {k: 100 * len(found[k]) / max(1, len(getattr(data, rules[k][0]))) for k in found}
    counts = {words: Counted.of(some) for words, some in found.items() if some}
    notes = {k: n for k, n in counts.items() if TOLD_SHARE <= shares[k] < WRONG_SHARE}
    return notes, {k: n for k, n in counts.items() if shares[k] >= WRONG_SHARE}


def look_alikes(words: Iterable[str]) -> list[str]:
    """Return the words that look like another one.

    They differ in case, blanks, .0, a full stop, signs without width, or letters of alphabets.

    >>> look_alikes(["no", "Yes", "yes ", "1", "1.0", "no."])
    ["'no'", "'Yes'", "'yes '", "'1'", "'1.0'", "'no.'"]
    """
    looks = {word: look_of(word) for word in words}
    counts = Counter(looks.values())
    return [ascii(word) for word, look in looks.items() if counts[look] > 1]


def look_of(word: str) -> str:
    seen = "".join(letter for letter in normalize("NFC", word) if category(letter) != "Cf")
    look = " ".join(seen.casefold().translate(LOOKS).split()).removesuffix(".0")
    return look.rstrip(".") or look


def negative_alone(numbers: Iterable[float]) -> bool:
    """Return whether -1 alone is negative, beside two other numbers or more.

    >>> negative_alone([-1, 0, 1]), negative_alone([-1, 1]), negative_alone([-2, -1, 0, 1])
    (True, False, False)
    """
    low, *others = sorted({*numbers}) or [0]
    return bool(low == -1 and len(others) > 1 and others[0] >= 0)


def groups_in_both(samples: Samples) -> list[str]:
    if samples.draws or not len(samples.groups):
        return []
    train, test = ({samples.groups[k] for k in part} for part in of_test(samples.parts))
    return sorted(map(str, train & test))


RULES: Rules[Samples] = {  # what is probably wrong with samples of any kind
    "classes that look alike": lambda s: look_alikes(s.classes),
    "classes that may stand for what is missing": lambda s: [
        *filter(NO_CLASS.fullmatch, s.classes),
        *["-1"] * (all(map(is_number, s.classes)) and negative_alone(map(float, s.classes))),
    ],
    "scores that may stand for what is missing": lambda s: (
        ["-1"] * (not s.classes and negative_alone(s.labels))
    ),
    "scores that may be classes of inference": lambda s: (
        ["0", "1", "2"] * (s.own and not s.classes and {*s.labels} == {0, 1, 2})
    ),
    "groups that are trained on and tested": groups_in_both,
}


def doubts_of(samples: Samples) -> dict[str, Any]:
    return {**samples.doubts, **found_by(RULES, samples)}


@dataclass(frozen=True)
class DataReport:
    """What a data set holds as it was read."""

    samples: str = "samples"  # what they are
    parts: Mapping[str, int] = field(default_factory=dict)  # samples of each
    classes: Mapping[str, int] = field(default_factory=dict)  # samples of each
    features: Mapping[str, int] = field(default_factory=dict)  # how many of each kind
    twins: Twins | None = None
    near: Twins | None = None  # of nearly equal samples
    notes: Mapping[str, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False

    @classmethod
    def of(cls, samples: Samples) -> "DataReport":
        named = {*samples.groups}
        return cls(
            samples.what,
            samples.parts,
            class_counts(samples.classes, samples.labels),
            {**samples.features, **({"groups": len(named)} if named else {})},
            samples.twins(samples.keys),
            samples.twins(samples.near),
            samples.notes,
            doubts_of(samples),
            samples.own,
        )

    @property
    def likeness(self) -> list[tuple[bool, str]]:
        """Return the lines on equal and nearly equal samples, each with whether it is a doubt."""
        counted = {"equal": self.twins}
        if self.near != self.twins:
            counted["nearly equal"] = self.near
        texts = [
            (twins.wrong, twins.text(self.samples, self.samples != "pairs", how))
            for how, twins in counted.items()
            if twins
        ]
        return [(wrong, text) for wrong, text in texts if text]

    @property
    def wrong(self) -> bool:
        return bool(self.doubts) or any(t.wrong for t in (self.twins, self.near) if t)

    def lines(self, name: str, most: int = MAX_LINES, always: bool = False) -> list[str]:
        """Return lines for people, none where there is nothing to tell unless `always`."""
        doubts = [(True, noted(*pair)) for pair in self.doubts.items()] + self.likeness
        facts = ["probably wrong: " * wrong + text for wrong, text in doubts]
        facts += [noted(*pair) for pair in self.notes.items()]
        if not (facts or self.own or always):
            return []
        head, room = f"{name}: {self.sizes}", most - 1
        if len(facts) > room:
            facts[room - 1 :] = [f"{len(facts) - room + 1} more: bench data check says all"]
        return [head, *(f"  {line}" for line in facts)]

    @property
    def sizes(self) -> str:
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
        keys = ("parts", "classes", "features", "twins", "near")
        return {key: facts[key] for key in keys if facts[key]}


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

    >>> from contrastbench.domains.samples import Counted
    >>> noted("grey", Counted(2, "a.png")), noted("empty columns", ["a", "b"])
    ('grey: 2 (first: a.png)', 'empty columns: a, b')
    """
    if isinstance(value, Mapping):
        value = [f"{name} {count}" for name, count in value.items()]
    if isinstance(value, list | tuple):
        more = f" and {len(value) - FEW} more" if len(value) > FEW else ""
        return f"{what}: {', '.join(map(str, value[:FEW]))}{more}"
    first = getattr(value, "first", "")
    return f"{what}: {value}" + f" (first: {first})" * bool(first)


def class_counts(names: Sequence[str], labels: Iterable[Any]) -> dict[str, int]:
    if not names:
        return {}
    counts = np.bincount(np.fromiter(labels, dtype=np.int64), minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def small_batch(size: int, recipe: Recipe) -> dict[str, int]:
    note = f"samples of a batch, all there are in place of batch_size={recipe.batch_size}"
    return {note: size} if size < recipe.batch_size else {}
