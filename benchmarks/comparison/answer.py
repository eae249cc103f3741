"""A comparison in a sentence or two."""

from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import NO_BASE, Comparison, counts
from contrastbench.benchmarks.comparison.over_sets import (
    OverSets,
    amount,
    over_sets_text,
    set_of,
)

WORDS = {"win": "better", "loss": "worse", "failed": "failed"}  # of verdicts


def answer(
    base: str,
    comparisons: list[Comparison],
    over: Sequence[OverSets] = (),
    joined: Sequence[str] = (),
) -> str:
    """The comparison in a sentence: rows that joined, all over data sets, and set by set."""
    own = [of_row(row, base, comparisons, over) for row in joined if row != base]
    return " ".join(filter(None, (*own, over_sets_text(base, over), by_set(base, comparisons))))


def of_row(row: str, base: str, comparisons: Sequence[Comparison], over: Sequence[OverSets]) -> str:
    """Where one row is better or worse, and what it comes to over data sets."""
    mine = [one for one in comparisons if one.row == row]
    if not mine:
        return f"{row} has no seed in common with {base} yet: bench sweep runs its cells."
    all_sets = [one for one in over if one.row == row]
    found = [*over_all(all_sets), *differences(mine)]
    verdicts = [one.verdict for one in mine] + [one.verdict for one in all_sets]
    if not WORDS.keys() & set(verdicts):
        found.append(f"no difference from {base} holds")
    return f"{row} on {len(mine)} of {sets_text(comparisons)}: {', '.join(found)}."


def over_all(own: Sequence[OverSets]) -> Iterator[str]:
    """A row's mean difference over data sets, if there are enough."""
    for one in own:
        yield f"{WORDS.get(one.verdict, '')} over them ({amount(one)})".lstrip()


def differences(mine: Sequence[Comparison]) -> Iterator[str]:
    """The columns where a row is better, worse, or has failed."""
    for verdict, words in WORDS.items():
        there = [one for one in mine if one.verdict == verdict]
        if there:
            yield f"{words} on {', '.join(map(column_text, there))}"


def column_text(one: Comparison) -> str:
    """A column with its difference."""
    return one.column + ("" if one.difference is None else f" ({one.difference:+.1f})")


def by_set(base: str, comparisons: list[Comparison]) -> str:
    """On how many data sets which method differs, in a sentence."""
    tested = [comparison for comparison in comparisons if comparison.holm is not None]
    basis = f"{len(tested)} test{'s' * (len(tested) != 1)}, Holm."
    found = {
        words: list(rows_with(comparisons, verdict))
        for words, verdict in ((f"Better than {base}", "win"), (f"Worse than {base}", "loss"))
    }
    parts = [f"{words}: {', '.join(rows)}." for words, rows in found.items() if rows]
    nothing = "differs from" if tested else "is tested against"
    parts = parts or [f"Nothing {nothing} {base} on {sets_text(comparisons)}."]
    return " ".join([*parts, *[basis] * bool(tested), *failed_text(base, comparisons)])


def failed_text(base: str, comparisons: list[Comparison]) -> Iterator[str]:
    """Who has no number where others have one, in a sentence."""
    rows = list(rows_with(comparisons, "failed"))
    without = list(dict.fromkeys(one.column for one in comparisons if one.why.startswith(NO_BASE)))
    rows += [f"{base} ({', '.join(without)})"] * bool(without)
    if rows:
        yield f"Failed: {', '.join(rows)}."


def rows_with(comparisons: list[Comparison], verdict: str) -> Iterator[str]:
    """Each row with such a verdict, of how many of its own columns; most first."""
    found = [(row, count[verdict]) for row, count in counts(comparisons).items() if count[verdict]]
    for row, n in sorted(found, key=lambda one: -one[1]):
        yield f"{row} ({n} of {sets_text([one for one in comparisons if one.row == row])})"


def sets_text(comparisons: Sequence[Comparison]) -> str:
    """How many columns there are; data sets, where each is one of its own."""
    columns = len({one.column for one in comparisons})
    what = "data set" if columns == len({set_of(one) for one in comparisons}) else "column"
    return f"{columns} {what}{'s' * (columns > 1)}"
