"""What is said of any data as it was read: sizes, equal samples, and what is probably wrong."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from unicodedata import category, normalize

import numpy as np

from contrastbench.domains.reading import is_number
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.samples import TOLD_SHARE, WRONG_SHARE, Counted, Samples, Twins, of_test

FEW = 3  # names that a line has
MAX_LINES = 5
MAX_CLASSES = 100  # whose counts a record has
LOOKS = str.maketrans("аеорсухіѕјкмнвтαοριντκ", "aeopcyxisjkmhbtaopivtk")  # of other alphabets
NO_CLASS = re.compile("(?i)nan|null|n[./]?a[.]?|<na>|nat|missing|unknown|unlabell?ed|[?]|")
Data = TypeVar("Data")
Rules = Mapping[str, Callable[[Data], Any]]  # what is found, such as names or a count, by its words
Shares = Mapping[str, tuple[str, Callable[[Data], Sequence[object]]]]  # and among which it is found


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
