"""A comparison in a few sentences: controls, the verdicts over data sets, and set by set."""

from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import (
    NO_BASE,
    Comparison,
    family_of,
    verdict_counts,
)
from contrastbench.benchmarks.comparison.control_sentences import controls_text
from contrastbench.benchmarks.comparison.effects import OverSets
from contrastbench.benchmarks.comparison.over_sets_sentences import few_text, over_sets_parts
from contrastbench.benchmarks.comparison.row_sentences import of_row
from contrastbench.benchmarks.comparison.wording import names_text, sets_text
from contrastbench.benchmarks.tables.table import Table


def answer(base: str, comparisons: list[Comparison], over: OverSets) -> str:
    """Return the answer: controls, the verdicts over all sets, and each set."""
    return " ".join(answer_parts(base, comparisons, over))


def answer_parts(base: str, comparisons: list[Comparison], over: OverSets) -> list[str]:
    """Return the answer in parts of a sentence or two."""
    parts = [controls_text(base, over, comparisons), *over_sets_parts(base, over), few_text(over)]
    return [*filter(None, [*parts, by_set(base, comparisons, over)])]


def opening_lines(
    table: Table, base: str, comparisons: Sequence[Comparison], over: OverSets
) -> list[str]:
    """Return what comes first: the verdicts on rows that are asked for, a quick part, a draft."""
    has_quick_part = bool(table.quick) and not table.is_quick
    own = [
        of_row(row, base, comparisons, over, has_quick_part) for row in table.asked if row != base
    ]
    return [*["Quick:"] * (table.is_quick and bool(own)), *own, *table.remarks]


def by_set(base: str, comparisons: list[Comparison], over: OverSets | None = None) -> str:
    """Return which rows differ from the baseline on how many single data sets."""
    controls = {one.row for one in over.effects if one.control} if over else set()
    losses = (one for one in comparisons if not (one.control or one.other_data))
    own = [one for one in losses if one.row not in controls] or comparisons
    rows = [one for one in own if not one.joined] or own  # the answer begins with those that joined
    found = {verdict: list(rows_with(rows, verdict)) for verdict in ("better", "worse")}
    parts = [f"{name} than {base}: {names_text(those)}" for name, those in found.items() if those]
    family = {family_of(one) for one in rows}
    tested = sum(one.holm is not None for one in comparisons if family_of(one) in family)
    counted = max((one.family for one in rows), default=tested)
    more = f" for all {counted}" * (counted > tested)
    basis = f"({tested} test{'s' * (tested != 1)}, Holm{more})"
    if parts:
        text = f"On single data sets {'; '.join(parts)} {basis}."
    elif tested:
        text = f"No loss is better or worse than {base} on any single data set {basis}."
    else:
        text = f"Nothing is tested against {base} on {sets_text(rows)}."
    return " ".join([text, *failed_text(base, rows)])


def failed_text(base: str, comparisons: list[Comparison]) -> Iterator[str]:
    """Name the rows without a number where others have one."""
    rows = list(rows_with(comparisons, "failed"))
    some = {one.row: None for one in comparisons if one.lost and one.verdict != "failed"}
    if some:
        yield f"Diverged with some seeds: {names_text(list(some))}."
    if places := {one.column: len(one.base_lost) for one in comparisons if one.base_lost}:
        named = [f"{column} ({n} seed{'s' * (n > 1)})" for column, n in places.items()]
        yield (
            f"{base} itself diverged on {names_text(named)}, so no loss is worse or equal there: "
            "its other seeds are those that went well."
        )
    without = list(dict.fromkeys(one.column for one in comparisons if one.why.startswith(NO_BASE)))
    rows += [f"{base} ({', '.join(without)})"] * bool(without)
    if rows:
        yield f"Failed: {names_text(rows)}."


def rows_with(comparisons: list[Comparison], verdict: str) -> Iterator[str]:
    """Yield each row with such a verdict and on how many of its columns; most first."""
    found = [
        (row, count[verdict])
        for row, count in verdict_counts(comparisons).items()
        if count[verdict]
    ]
    for row, n in sorted(found, key=lambda one: -one[1]):
        yield f"{row} ({n} of {sets_text([one for one in comparisons if one.row == row])})"
