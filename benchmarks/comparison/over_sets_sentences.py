"""The verdicts over data sets in sentences, and what could have been seen."""

from collections.abc import Iterator

from contrastbench.benchmarks.comparison.effects import Effect, OverSets, least_seen, too_few
from contrastbench.benchmarks.comparison.numbers import signed
from contrastbench.benchmarks.comparison.wording import (
    effect_with_unit,
    in_the_mean,
    names_text,
    where_text,
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
        *[f"{equal_text(over)}: {names_text(equal)}"] * bool(equal),
        *[f"undecided: {names_text(undecided)}"] * bool(undecided),
        *[f"{too_few(over.test)}: {names_text(few)}"] * bool(few),
    ]
    return f"{'; '.join(parts)}."


def equal_text(over: OverSets) -> str:
    """Return the words for equal losses: by which margin, and in what mean."""
    return f"equal within {over.margin:g} {over.unit}{in_the_mean(over.domains)}"


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


def missing_parts(base: str, over: OverSets) -> Iterator[str]:
    """Name losses and data sets on which nothing can be said, as something has not run."""
    yield fewer_sets_text(over)
    if lost := [one.row for one in over.listed if one.without_effect]:
        yield f"Failed on some sets, and so neither better nor equal: {names_text(lost)}."
    if names := over.without_results:
        yield f"No results yet: {names_text(names)}."
    if names := over.not_compared:
        yield f"Nothing is compared on {names_text(names)}: {base} or all others lack results."


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


def left_out_text(over: OverSets) -> str:
    """Name the data sets that do not count."""
    if not over.left_out:
        return ""
    then = "there is no verdict over sets" if over.nothing_counts else "these do not count"
    return f"Training gains nothing clear on {names_text(over.left_out)}: {then}."


def few_text(over: OverSets) -> str:
    """Say that there are too few seeds or sets for any verdict over several sets."""
    if not over.contestants or over.decides:
        return ""
    if not over.on_these:
        seeds = max(len(one.by_seed) for row in over.contestants for one in row.by_set.values())
        named = f"{over.sets} data sets are too few for a verdict by the {over.test.name}"
        return f"{named}: --test seeds takes them as given." * (over.sets > 1 and seeds > 1)
    return f"Too few seeds for a verdict {where_text(over.sets, over)}: give each set two at least."
