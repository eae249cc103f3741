"""Say whether the controls came out as they must, over data sets and, of few, set by set."""

from collections import Counter
from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.effects import Effect, OverSets, too_few
from contrastbench.benchmarks.comparison.signed_rank import DIGITS

FEW_SETS = 5  # data sets, up to which the controls are looked at set by set
# how a control did not come out: a sign is there or not, a verdict is shown or not
WORDS = {"worse": "worse than", "better": "better than", "below": "below"}
NOT_SHOWN = {"worse": "is not shown to be", "better": "is not shown to be", "below": "is not"}


def controls_text(base: str, over: OverSets, comparisons: Sequence[Comparison]) -> str:
    """Say whether the controls came out as they must, and if not that nothing can be read."""
    controls = [one for one in over.effects if one.control]
    judged = [one for one in controls if one.verdict != too_few(over.test)]
    wrong = [one for one in judged if not one.came_out]
    if wrong:
        return f"This comparison cannot be read: {wrong_text(base, wrong, over)}."
    said = [counts_text(base, judged, over)] if judged else []
    if not judged or over.sets <= FEW_SETS:
        said += blind_sets(base, controls, comparisons, quiet=bool(judged))
    return " ".join(said)


def counts_text(base: str, controls: Sequence[Effect], over: OverSets) -> str:
    """Count the controls that came out in each way; they are judged on all sets."""
    (first, n), *others = Counter(one.must for one in controls).items()
    counts = [f"{n} {WORDS[first]} {base}", *(f"{n} {must}" for must, n in others)]
    return f"Controls{', over all sets' * bool(over.left_out)}: {', '.join(counts)}, as must be."


def wrong_text(base: str, controls: Sequence[Effect], over: OverSets) -> str:
    """Say how these controls were not shown to come out against the baseline."""
    by_must: dict[str, list[str]] = {}
    for one in controls:
        by_must.setdefault(one.must, []).append(f"'{one.row}'{on_fewer_sets(one, over)}")
    found = (
        f"{', '.join(names)} {plural(NOT_SHOWN[must], names)} {WORDS[must]} {base}"
        for must, names in by_must.items()
    )
    return f"{'; '.join(found)}, as a control must be"


def on_fewer_sets(one: Effect, over: OverSets) -> str:
    """Say on how many of the sets a control has run, where that is not all of them."""
    few = len(one.by_set) < over.sets
    return f" ({len(one.by_set)} of {over.sets} sets)" * few


def plural(verb: str, names: Sequence[str]) -> str:
    """Return the verb for one name or several.

    >>> plural("is not", ["a"]), plural("is not", ["a", "b"])
    ('is not', 'are not')
    """
    return verb if len(names) == 1 else verb.replace("is", "are", 1)


def blind_sets(
    base: str, controls: Sequence[Effect], comparisons: Sequence[Comparison], quiet: bool
) -> Iterator[str]:
    """Name the single sets that cannot be read, where there are few sets.

    If there are none, say so, unless the controls have a verdict over sets.
    """
    worse = [one.row for one in controls if one.must == "worse"]
    mine = [one for one in comparisons if one.row in worse and one.difference is not None]
    wrong: dict[str, list[str]] = {}
    for one in mine:
        if one.difference is not None and round(one.difference, DIGITS) >= 0:
            wrong.setdefault(one.column, []).append(f"'{one.row}'")
    for column, rows in wrong.items():
        yield (
            f"{column} cannot be read: {', '.join(rows)} {plural('is', rows)} no worse than {base} "
            "there."
        )
    if mine and not wrong and not quiet:
        names = [f"'{row}'" for row in worse]
        yield f"Controls: {', '.join(names)} {plural('is', names)} below {base} on each set."
