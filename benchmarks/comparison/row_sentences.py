"""The verdict on one row that is asked for, in sentences."""

from collections.abc import Iterator, Sequence
from math import isfinite

from contrastbench.benchmarks.comparison.compare import INCOMPLETE, Comparison
from contrastbench.benchmarks.comparison.effects import SAME_LOSS, Effect, OverSets, too_few
from contrastbench.benchmarks.comparison.numbers import signed
from contrastbench.benchmarks.comparison.wording import (
    effect_with_unit,
    in_the_mean,
    names_text,
    sets_text,
    where_text,
)


def of_row(
    row: str,
    base: str,
    comparisons: Sequence[Comparison],
    over: OverSets,
    has_quick_part: bool = False,
) -> str:
    """Return the verdict on one row over data sets, and where it is better or worse.

    Args:
        row: its name.
        base: the baseline's name.
        comparisons: of all rows with the baseline.
        over: the verdicts over sets.
        has_quick_part: whether runs of a quick part may be there, which do not count.
    """
    mine = [one for one in comparisons if one.row == row]
    if not mine:
        return (
            f"{row} has no seed in common with {base} yet, or its file was edited since: "
            f"bench sweep runs its cells{'; runs of --quick do not count here' * has_quick_part}."
        )
    run = [one for one in mine if not one.why.startswith(INCOMPLETE)]
    found = next((one for one in over.contestants if one.row == row), None)
    parts = [verdict_text(found, base, over)] if found and over.decides else []
    if run:
        first = "It has run" if parts else row
        parts.append(f"{first} on {len(run)} of {sets_text(comparisons)}: {on_sets(run)}.")
    return " ".join([*parts, *incomplete_text(row, mine, has_quick_part)])


def verdict_text(one: Effect, base: str, over: OverSets) -> str:
    """Return the verdict on a row over data sets, with its effect, interval and domains."""
    if one.verdict == SAME_LOSS:
        return f"{one.row} is the same loss as {base}."
    words = {
        "better": f"is better than {base}",
        "worse": f"is worse than {base}",
        "equal": f"is equal to {base} within {over.margin:g} {over.unit}"
        f"{in_the_mean(one.by_domain, ',')}",
    }
    said = words.get(one.verdict, f"is undecided against {base}")
    where = where_text(len(one.by_set), over)
    if one.verdict == too_few(over.test):
        few = "too few seeds" if over.on_these else "too few"
        said, where = f"has no verdict against {base}", f"{where}, {few} for any"
    said = f"{one.row} {said} {where}: effect {effect_text(one, over)}{sight_of(one, over)}."
    return " ".join([said, *alone_text(one, base)])


def alone_text(one: Effect, base: str) -> Iterator[str]:
    """Say in which domains a row is better or worse by their own sets."""
    found = [f"{verdict} than {base} in {domain}" for domain, verdict in one.alone.items()]
    if found:
        yield f"By one domain alone it is {', '.join(found)}."


def sight_of(one: Effect, over: OverSets) -> str:
    """Return which effect of a row without a difference would have been seen."""
    if one.verdict not in ("equal", "undecided") or not one.detectable:
        return ""
    shown = f"{one.detectable:.{over.decimals}f} {'%' if over.gains else 'points'}"
    return f"; {shown} would have been seen four times in five"


def effect_text(one: Effect, over: OverSets) -> str:
    """Return an effect with its interval and the mean of each domain."""
    domains = [f"{name} {signed(mean, over.decimals)}" for name, mean in one.by_domain.items()]
    unit = "of the training gain " * bool(over.gains)
    level = f"no {100 * (1 - over.alpha):g} % interval"
    if all(map(isfinite, one.interval)):
        level = f"{level[3:]} {' to '.join(signed(end, over.decimals) for end in one.interval)}"
    return f"{effect_with_unit(one, over)} {unit}({level}; {', '.join(domains)})"


def on_sets(mine: Sequence[Comparison]) -> str:
    """Return on which single sets a row is better, worse or failed."""
    found = []
    for verdict in ("better", "worse", "failed"):
        if there := [one for one in mine if one.verdict == verdict]:
            found.append(f"{verdict} on {names_text(list(map(column_text, there)))}")
    return ", ".join(found) or "better or worse on none by itself"


def column_text(one: Comparison) -> str:
    """Return a column with its difference."""
    return one.column + ("" if one.difference is None else f" ({one.difference:+.1f})")


def incomplete_text(row: str, mine: Sequence[Comparison], has_quick_part: bool) -> Iterator[str]:
    """Name the sets that do not count for a row, as some of its seeds have not run."""
    short = [one for one in mine if one.why.startswith(INCOMPLETE)]
    if short:
        names = [f"{one.column} ({one.why.removeprefix(f'{INCOMPLETE}: ')})" for one in short]
        yield (
            f"{row} does not count on {names_text(names)}: bench sweep runs the rest"
            f"{', and --quick compares a quick part alone' * has_quick_part}."
        )
