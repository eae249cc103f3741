"""A comparison in a few sentences: controls, the verdicts over data sets, and set by set."""

from collections.abc import Iterator, Sequence
from math import isfinite

from contrastbench.benchmarks.comparison.compare import (
    INCOMPLETE,
    NO_BASE,
    Comparison,
    family_of,
    verdict_counts,
)
from contrastbench.benchmarks.comparison.control_sentences import controls_text
from contrastbench.benchmarks.comparison.effects import (
    SAME_LOSS,
    Effect,
    OverSets,
    least_seen,
    too_few,
)
from contrastbench.benchmarks.comparison.numbers import signed
from contrastbench.benchmarks.tables.table import Table

MAX_NAMES = 4  # names in one list of the answer


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
    own = [of_row(row, base, comparisons, over) for row in table.asked if row != base]
    return [*["Quick:"] * (table.is_quick and bool(own)), *own, *table.remarks]


def names_text(names: Sequence[str]) -> str:
    """Return names in a sentence, of many the first ones; the rows below have them all.

    >>> names_text(["a", "b"]), names_text(list("abcdef"))
    ('a, b', 'a, b, c and 3 more')
    """
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES - 1])} and {len(names) - MAX_NAMES + 1} more"


def of_row(row: str, base: str, comparisons: Sequence[Comparison], over: OverSets) -> str:
    """Return the verdict on one row over data sets, and where it is better or worse."""
    mine = [one for one in comparisons if one.row == row]
    if not mine:
        return (
            f"{row} has no seed in common with {base} yet, or its file was edited since: "
            "bench sweep runs its cells."
        )
    run = [one for one in mine if not one.why.startswith(INCOMPLETE)]
    found = next((one for one in over.contestants if one.row == row), None)
    parts = [verdict_text(found, base, over)] if found and over.decides else []
    if run:
        first = "It has run" if parts else row
        parts.append(f"{first} on {len(run)} of {sets_text(comparisons)}: {on_sets(run)}.")
    return " ".join([*parts, *incomplete_text(row, mine)])


def verdict_text(one: Effect, base: str, over: OverSets) -> str:
    """Return the verdict on a row over data sets, with its effect, interval and domains."""
    if one.verdict == SAME_LOSS:
        return f"{one.row} is the same loss as {base}."
    words = {
        "better": f"is better than {base}",
        "worse": f"is worse than {base}",
        "equal": f"is equal to {base} within {over.margin:g} {over.unit}{in_the_mean(over, ',')}",
    }
    said = words.get(one.verdict, f"is undecided against {base}")
    where = where_text(len(one.by_set), over)
    if one.verdict == too_few(over.test):
        few = "too few seeds" if over.on_these else "too few"
        said, where = f"has no verdict against {base}", f"{where}, {few} for any"
    said = f"{one.row} {said} {where}: effect {effect_text(one, over)}{sight_of(one, over)}."
    return " ".join([said, *alone_text(one, base)])


def in_the_mean(over: OverSets, end: str = "") -> str:
    """Return what an effect is the mean over, as the effects of domains may have both signs."""
    return f" in the mean over domains{end}" * (len(over.domains) > 1)


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


def where_text(sets: int, over: OverSets) -> str:
    """Return the data sets that a verdict holds for: these alone, or those that are like them.

    >>> where_text(8, OverSets([]))
    'over 8 data sets'
    """
    found = f"{sets} data set{'s' * (sets != 1)}"
    return f"on {'these' if sets != 1 else 'this'} {found}" if over.on_these else f"over {found}"


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


def incomplete_text(row: str, mine: Sequence[Comparison]) -> Iterator[str]:
    """Name the sets that do not count for a row, as some of its seeds have not run."""
    short = [one for one in mine if one.why.startswith(INCOMPLETE)]
    if short:
        names = [f"{one.column} ({one.why.removeprefix(f'{INCOMPLETE}: ')})" for one in short]
        yield (
            f"{row} does not count on {names_text(names)}: bench sweep runs the rest, and --quick "
            "compares a quick part alone."
        )


def over_sets_text(base: str, over: OverSets) -> str:
    """Return the verdicts over data sets, what would have been seen, and which sets do not count.

    Nothing where there are too few sets for any verdict.
    """
    return " ".join(filter(None, over_sets_parts(base, over)))


def over_sets_parts(base: str, over: OverSets) -> list[str]:
    """Return the parts of the text over data sets; some may be empty."""
    if over.nothing_counts:
        return [left_out_text(over)]
    if not (over.contestants and over.decides):
        return []
    parts = (verdicts_text(base, over), domains_text(base, over), *missing_parts(base, over))
    return [*parts, seen_text(over), left_out_text(over)]


def fewer_sets_text(over: OverSets) -> str:
    """Name the losses whose verdict is on fewer data sets than those of others."""
    fewer = [
        one
        for one in over.listed
        if not one.is_copy and len(one.by_set) + one.without_effect < over.sets
    ]
    if not fewer:
        return ""
    names, counts = names_text([one.row for one in fewer]), {len(one.by_set) for one in fewer}
    least = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{min(counts)}"
    verb, whose = ("have", "their verdicts are") if len(fewer) > 1 else ("has", "its verdict is")
    return f"{names} {verb} run on {least} of {over.sets} sets: {whose} on these alone."


def missing_parts(base: str, over: OverSets) -> Iterator[str]:
    """Name losses and data sets on which nothing can be said, as something has not run."""
    yield fewer_sets_text(over)
    if lost := [one.row for one in over.listed if one.without_effect]:
        yield f"Failed on some sets, and so neither better nor equal: {names_text(lost)}."
    if names := over.without_results:
        yield f"No results yet: {names_text(names)}."
    if names := over.not_compared:
        yield f"Nothing is compared on {names_text(names)}: {base} or all others lack results."


def few_text(over: OverSets) -> str:
    """Say that there are too few seeds or sets for any verdict over several sets."""
    if not over.contestants or over.decides:
        return ""
    if not over.on_these:
        seeds = max(len(one.by_seed) for row in over.contestants for one in row.by_set.values())
        named = f"{over.sets} data sets are too few for a verdict by the {over.test.name}"
        return f"{named}: --test seeds takes them as given." * (over.sets > 1 and seeds > 1)
    return f"Too few seeds for a verdict {where_text(over.sets, over)}: give each set two at least."


def verdicts_text(base: str, over: OverSets) -> str:
    """Return the verdicts over data sets in one sentence."""
    rows = over.listed
    if not rows:
        return ""
    better, worse, equal = (
        [
            f"{one.row} ({effect_with_unit(one, over)}{margin_mark(one, over)})"
            for one in rows
            if one.verdict == verdict
        ]
        for verdict in ("better", "worse", "equal")
    )
    undecided, few = (
        [one.row for one in rows if one.verdict == verdict]
        for verdict in ("undecided", too_few(over.test))
    )
    where = where_text(over.sets, over)
    parts = [
        f"{where.capitalize()} ({over.test.name}, {holm_text(over)}) "
        + (
            f"better than {base}: {names_text(better)}"
            if better
            else f"{nobody_text(over)} better than {base}"
        ),
        *[f"worse: {names_text(worse)}"] * bool(worse),
        *[f"equal within {over.margin:g} {over.unit}{in_the_mean(over)}: {names_text(equal)}"]
        * bool(equal),
        *[f"undecided: {names_text(undecided)}"] * bool(undecided),
        *[f"{too_few(over.test)}: {names_text(few)}"] * bool(few),
    ]
    return f"{'; '.join(parts)}."


def domains_text(base: str, over: OverSets) -> str:
    """Name the losses that one domain alone shows better or worse, and all together do not."""
    rows = [one for one in over.listed if not one.is_copy]
    found = []
    for domain in over.domains:
        named = {
            word: [
                f"{one.row} ({signed(one.by_domain[domain], over.decimals)})"
                for one in rows
                if one.alone.get(domain) == word != one.verdict
            ]
            for word in ("better", "worse")
        }
        parts = [
            f"{word} than {base}: {names_text(those)}" for word, those in named.items() if those
        ]
        found += [f"By {domain} sets alone {'; '.join(parts)}"] * bool(parts)
    tests = (len(rows) + over.to_come) * len(over.domains)
    return f"{'. '.join(found)} (Holm for all {tests})." if found else ""


def margin_mark(one: Effect, over: OverSets) -> str:
    """Return the words for a difference that is shown, and shown to lie within the margin."""
    return f", within {over.margin:g} {'%' if over.gains else 'points'}" * over.is_small(one)


def holm_text(over: OverSets) -> str:
    """Name the correction, and the losses that it counts where some have not run."""
    tested = sum(not one.is_copy for one in over.listed)
    return "Holm" + f" for all {tested + over.to_come} losses" * bool(over.to_come)


def nobody_text(over: OverSets) -> str:
    """Return the words for no loss, or for none of those that have run where others have not."""
    tested = sum(not one.is_copy for one in over.listed)
    if not over.without_results:
        return "no loss is"
    return f"none of {tested} losses that have run is" if tested > 1 else "no loss that has run is"


def left_out_text(over: OverSets) -> str:
    """Name the data sets that do not count."""
    if not over.left_out:
        return ""
    then = "there is no verdict over sets" if over.nothing_counts else "these do not count"
    return f"Training gains nothing clear on {names_text(over.left_out)}: {then}."


def seen_text(over: OverSets) -> str:
    """Say which effect over data sets would have been seen, at the level of the verdicts."""
    tested = [one for one in over.listed or over.contestants if not one.is_copy]
    to_come = over.to_come if over.listed else 0
    least, level = least_seen(tested), over.alpha / max(1, len(tested) + to_come)
    if all(one.detectable == 0 for one in tested):
        return ""  # no loss, or none that differs with any seed
    if least is None and over.on_these:
        return "No effect would have been seen: there are too few seeds."
    if least is None:
        sets = max(len(one.by_set) for one in tested)
        few = f"{sets} set{'s' * (sets != 1)}"
        return f"No effect would have been seen: {few} cannot give a p of {level:.2g}."
    shown = f"{least:.0f} %" if over.gains else f"{least:.1f} points"
    where = " on these sets" * over.on_these
    beyond = " Other samples of these sets, or another set, may differ." * over.on_these
    whose = " for the median loss" * (len(tested) > 1)
    return (
        f"An effect of {shown}{' of the training gain' * bool(over.gains)} would have been seen"
        f"{where} four times in five{whose}.{beyond}"
    )


def effect_with_unit(one: Effect, over: OverSets) -> str:
    """Return an effect with its unit.

    >>> effect_with_unit(Effect("new", {}, 0, 2.25, (0.0, 3.0), 0.1, 1.0), OverSets([]))
    '+2.2 points'
    """
    return f"{signed(one.estimate, over.decimals)} {'%' if over.gains else 'points'}"


def column_text(one: Comparison) -> str:
    """Return a column with its difference."""
    return one.column + ("" if one.difference is None else f" ({one.difference:+.1f})")


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


def sets_text(comparisons: Sequence[Comparison]) -> str:
    """Return how many columns there are; data sets, where each is one of its own."""
    columns = len({one.column for one in comparisons})
    sets = len({(one.domain, one.dataset) for one in comparisons})
    return f"{columns} {'data set' if columns == sets else 'column'}{'s' * (columns > 1)}"
