"""A comparison in a sentence or two."""

from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import NO_BASE, Comparison, counts
from contrastbench.benchmarks.comparison.over_sets import OverSets, over_sets_text, set_of


def answer(base: str, comparisons: list[Comparison], over: Sequence[OverSets] = ()) -> str:
    """The comparison in a sentence: over data sets where there are enough, and set by set."""
    return " ".join(filter(None, (over_sets_text(base, over), by_set(base, comparisons))))


def by_set(base: str, comparisons: list[Comparison]) -> str:
    """On how many data sets which method differs, in a sentence."""
    tested = [comparison for comparison in comparisons if comparison.holm is not None]
    columns = len({one.column for one in comparisons})
    what = "data set" if columns == len({set_of(one) for one in comparisons}) else "column"
    sets = f"{columns} {what}{'s' * (columns > 1)}"
    basis = f"{len(tested)} test{'s' * (len(tested) != 1)}, Holm."
    found = {
        words: [f"{row} ({n} of {sets})" for row, n in wins_of(comparisons, verdict).items()]
        for words, verdict in ((f"Better than {base}", "win"), (f"Worse than {base}", "loss"))
    }
    parts = [f"{words}: {', '.join(rows)}." for words, rows in found.items() if rows]
    nothing = "differs from" if tested else "is tested against"
    parts = parts or [f"Nothing {nothing} {base} on {sets}."]
    return " ".join([*parts, *[basis] * bool(tested), *failed_text(base, comparisons, sets)])


def failed_text(base: str, comparisons: list[Comparison], sets: str) -> Iterator[str]:
    """Who has no number where others have one, in a sentence."""
    rows = [f"{row} ({n} of {sets})" for row, n in wins_of(comparisons, "failed").items()]
    without = list(dict.fromkeys(one.column for one in comparisons if one.why.startswith(NO_BASE)))
    rows += [f"{base} ({', '.join(without)})"] * bool(without)
    if rows:
        yield f"Failed: {', '.join(rows)}."


def wins_of(comparisons: list[Comparison], verdict: str) -> dict[str, int]:
    """How many columns have that verdict, for each row with one, most first."""
    numbers = {row: count[verdict] for row, count in counts(comparisons).items() if count[verdict]}
    return dict(sorted(numbers.items(), key=lambda item: -item[1]))
