"""Say whether the controls came out as they must, over data sets and, of few, set by set."""

from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.effects import Effect, OverSets, too_few
from contrastbench.benchmarks.comparison.signed_rank import DIGITS

FEW_SETS = 5  # data sets, up to which the controls are looked at set by set
# how a control did not come out: a sign is there or not, a verdict is shown or not
NOT_SHOWN = {"worse": "is not shown to be", "better": "is not shown to be", "below": "is not"}


def controls_text(base: str, over: OverSets, comparisons: Sequence[Comparison]) -> str:
    """Say whether the controls came out as they must, and if not that nothing can be read."""
    controls = [one for one in over.effects if one.control]
    judged = [one for one in controls if one.verdict != too_few(over.test)]
    wrong = [one for one in judged if not one.came_out]
    if wrong:
        found = f"{must_text(base, wrong, over, shown=False)}, as a control must be"
        return f"This comparison cannot be read: {found}."
    said = [f"{controls_where(over)}: {must_text(base, judged, over)}."] if judged else []
    if not judged or over.sets <= FEW_SETS:
        said += blind_sets(base, controls, comparisons, quiet=bool(judged))
    return " ".join(said)


def controls_where(over: OverSets) -> str:
    """Return the first words on the controls, which are judged on all sets."""
    return "Controls" + ", over all sets" * bool(over.left_out)


def must_text(base: str, controls: Sequence[Effect], over: OverSets, shown: bool = True) -> str:
    """Say of controls together how they came out against the baseline, or were not shown to."""
    by_must: dict[str, list[str]] = {}
    for one in controls:
        by_must.setdefault(one.must, []).append(f"'{one.row}'{on_fewer_sets(one, over)}")
    words = {"worse": "worse than", "better": "better than", "below": "below"}
    verbs = {must: "is" if shown else NOT_SHOWN[must] for must in by_must}
    return "; ".join(
        f"{', '.join(names)} {plural(verbs[must], names)} {words[must]} {base}"
        for must, names in by_must.items()
    )


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
