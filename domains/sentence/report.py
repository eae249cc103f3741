"""What sets of sentences hold as they were read, by a table of rules."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from contrastbench.domains.report import NO_CLASS, Shares, by_share
from contrastbench.domains.samples import Samples, of_test
from contrastbench.domains.sentence.data import Corpus, words_of
from contrastbench.domains.sentence.own import ScoredSets
from contrastbench.domains.sentence.scoring import golds

Encoded = Callable[[list[str]], Sequence[Hashable]]  # what an encoder sees of sentences


class Texts(NamedTuple):
    """All sentences of a run."""

    pairs: list[tuple[str, str]]  # that are scored
    lines: list[str]  # that are trained on
    compared: list[str]  # different ones that are scored
    encoded: Encoded | None = None


def seen_twice(texts: Texts) -> list[str]:
    """Return the training sentences that an encoder sees as it sees one before.

    Only those of equal words are looked at: tokens of a million lines take minutes.
    """
    if texts.encoded is None:
        return []
    lines = [*dict.fromkeys(texts.lines)]
    words = Counter(map(words_of, lines))
    some = [line for line in lines if words[words_of(line)] > 1]
    first = {key: line for line, key in reversed([*zip(some, texts.encoded(some), strict=True)])}
    return [*(Counter(some) - Counter(first.values())).elements()]


SHARES: Shares[Texts] = {
    "pairs of twice the same sentence": ("pairs", lambda t: [a for a, b in t.pairs if a == b]),
    "pairs with an empty sentence": (
        "pairs",
        lambda t: [a or b for a, b in t.pairs if not (a and b)],
    ),
    "pairs with a word for what is missing as a sentence": (
        "pairs",
        lambda t: [a for pair in t.pairs for a in pair if a and NO_CLASS.fullmatch(a)],
    ),
    "training sentences that repeat another": (
        "lines",
        lambda t: [*(Counter(t.lines) - Counter({*t.lines})).elements()],  # those after the first
    ),
    "training sentences that repeat another but for capitals or the like": ("lines", seen_twice),
    "training sentences with tabs, perhaps columns": (
        "lines",
        lambda t: [line for line in t.lines if "\t" in line],
    ),
}
NO_DOUBTS: Shares[Texts] = {
    "scored sentences that are trained on": (  # without their scores
        "compared",
        lambda t: [*filter({*t.lines}.__contains__, t.compared)],
    ),
}


def sentence_samples(
    scored: ScoredSets,
    corpus: Corpus | None,
    notes: dict[str, Any],
    own: bool,
    encoded: Encoded | None = None,
) -> Samples:
    tested = [part for parts in scored.sets.values() for part in parts]
    chosen = [scored.dev] if scored.dev and tested else []
    pairs = [*chosen, *tested]
    keys = [(min(pair), max(pair)) for p in pairs for pair in zip(p.first, p.second, strict=True)]
    sizes = {"to choose by": sum(map(len, chosen)), "test": sum(map(len, tested))}
    others = {task.name: len(task.sentences) for task in scored.tasks}
    if scored.captions:
        others = {"to choose by": len(scored.captions.dev), "test": len(scored.captions.test)}
    lines = list(chain.from_iterable(corpus.rows)) if corpus else []
    hard = sum(len(corpus.negatives.get(line, ())) for line in lines) if corpus else 0
    texts = Texts(keys, lines, [*dict.fromkeys(scored.compared)], encoded)
    told, doubts = by_share(SHARES, texts)
    told |= {k: n for found in by_share(NO_DOUBTS, texts) for k, n in found.items()}
    return Samples(
        "pairs" if pairs else "sentences" if scored.tasks else "rows of sentences",
        {part: size for part, size in (sizes if pairs else others).items() if size},
        golds(pairs),
        keys=(lambda: keys) if pairs else None,
        near=(lambda: seen_pairs(keys, encoded)) if pairs and encoded else None,
        draws=[of_test(sizes)],
        features={"training sentences": len(lines), **({"hard negatives": hard} if hard else {})},
        notes=notes | told,
        doubts=doubts,
        own=own,
    )


def seen_pairs(pairs: Sequence[tuple[str, str]], encoded: Encoded) -> list[frozenset[Hashable]]:
    names = [*dict.fromkeys(chain.from_iterable(pairs))]
    seen = dict(zip(names, encoded(names), strict=True))
    return [frozenset((seen[a], seen[b])) for a, b in pairs]
