"""What sets of sentences hold as they were read."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from contrastbench.domains.report import (
    TOLD_SHARE,
    WRONG_SHARE,
    Counted,
    DataReport,
    count_twins,
    of_test,
)
from contrastbench.domains.sentence.data import Corpus
from contrastbench.domains.sentence.scored import ScoredSets
from contrastbench.domains.sentence.scoring import golds

TRAINED_ON = "scored sentences that are trained on"  # without their scores


def sentence_report(
    scored: ScoredSets, corpus: Corpus | None, notes: dict[str, Any], own: bool
) -> DataReport:
    """Return sizes, equal pairs, and repeated sentences.

    Args:
        scored: what is scored.
        corpus: what is trained on, if there is a training.
        notes: on reading.
        own: whether nobody has checked the sizes.
    """
    tested = [part for parts in scored.sets.values() for part in parts]
    chosen = [scored.dev] if scored.dev and tested else []
    pairs = [*chosen, *tested]
    keys = [(min(pair), max(pair)) for p in pairs for pair in zip(p.first, p.second, strict=True)]
    sizes = {"to choose by": sum(map(len, chosen)), "test": sum(map(len, tested))}
    lines = list(chain.from_iterable(corpus.rows)) if corpus else []
    known, texts = {*lines}, dict.fromkeys(scored.compared)
    more = Counter(lines) - Counter(known)  # of each line, those after its first
    odd: dict[str, tuple[list[str], Sequence[object]]] = {
        "pairs of twice the same sentence": ([a for a, b in keys if a == b], keys),
        "pairs with an empty sentence": ([a or b for a, b in keys if not (a and b)], keys),
        "training sentences that repeat another": ([*more.elements()], lines),
        "training sentences with tabs, perhaps columns": ([s for s in lines if "\t" in s], lines),
        TRAINED_ON: ([text for text in texts if text in known], [*texts]),
    }
    shares = {what: 100 * len(some) / max(1, len(of)) for what, (some, of) in odd.items()}
    counts = {what: Counted(len(some), some[0]) for what, (some, _) in odd.items() if some}
    wrong = [k for k in counts if shares[k] >= WRONG_SHARE and k != TRAINED_ON]
    others = {task.name: len(task.sentences) for task in scored.tasks}
    if scored.captions:
        others = {"to choose by": len(scored.captions.dev), "test": len(scored.captions.test)}
    return DataReport(
        "pairs" if pairs else "sentences" if scored.tasks else "rows of sentences",
        {part: size for part, size in (sizes if pairs else others).items() if size},
        features={"training sentences": len(lines)},
        twins=count_twins(keys, golds(pairs), [of_test(sizes)]) if pairs else None,
        notes=notes
        | {k: n for k, n in counts.items() if k not in wrong and shares[k] >= TOLD_SHARE},
        doubts={k: counts[k] for k in wrong},
        own=own,
    )
