"""A comparison for people to read: each place, methods over data sets, ranks."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import isfinite

from contrastbench.benchmarks.comparison.compare import Comparison, verdict_counts
from contrastbench.benchmarks.comparison.effects import Effect, OverSets
from contrastbench.benchmarks.comparison.numbers import number, p_text, signed
from contrastbench.benchmarks.comparison.over_sets_sentences import margin_mark
from contrastbench.benchmarks.comparison.overall_rank import Standing, standings
from contrastbench.benchmarks.comparison.ranks import ranks
from contrastbench.benchmarks.comparison.statistics import Ranking, deviation_factor
from contrastbench.benchmarks.comparison.wording import names_text
from contrastbench.benchmarks.tables.entries import Entry
from contrastbench.benchmarks.tables.formats import markdown_table
from contrastbench.benchmarks.tables.resolved import Resolved
from contrastbench.benchmarks.tables.table import Table

COMPARISON_LEGEND = """\
Pairs are the seeds that both have. Wilcoxon: signed-rank over seeds; {wilcoxon}.
t: over the same folds of the same seeds, or over seeds where there are no folds, corrected for
overlapping training sets by the ratio of test to training size (Nadeau and Bengio 2003; ratio 0:
all seeds share one split).
Won: in how many of the pairs ours is above. Effect: the difference over its standard deviation over
seeds (Cohen's d of pairs).
Detectable: the smallest true difference that this t-test finds with a chance of 80 % at level
{alpha} over {m}, at which Holm's correction begins. Seeds needed: so that it finds one of the size
that is seen; no number is enough where folds overlap too much for it.
Holm: p of the {test} test over the {m} comparisons of losses, run or not; controls are corrected
among themselves. Better, worse: Holm p <= {alpha}; undecided: above; untested: no p, or so few
pairs that none could be that small; failed: no seed has a number."""
ENOUGH_PAIRS = 5  # pairs, from which on a deviation is known to a factor of three
DECIDED_VERDICTS = ("better", "worse")
VERDICTS = ("better", "undecided", "worse", "untested", "failed")


def comparison_markdown(table: Table, comparisons: list[Comparison]) -> Iterator[str]:
    """Every test, a line each."""
    header = [
        "Method",
        "Column",
        "Pairs",
        "Baseline",
        "Ours",
        "Difference ± std",
        "Won",
        "Effect",
        "Detectable",
        "Seeds needed",
        "Wilcoxon p",
        "t p",
        "over",
        "Holm p",
        "",
    ]
    yield from markdown_table(
        [header, *(comparison_cells(comparison, table.decimals) for comparison in comparisons)]
    )
    yield ""
    lines = [
        [row, *(str(count[name]) for name in VERDICTS)]
        for row, count in verdict_counts(comparisons).items()
    ]
    yield from markdown_table([["Method", *VERDICTS], *lines])


def comparison_cells(comparison: Comparison, decimals: int) -> list[str]:
    """One comparison in words and numbers."""
    pairs = f"{len(comparison.seeds)}" + (
        f" (+{comparison.unpaired} unpaired)" if comparison.unpaired else ""
    )
    notes = "; ".join(filter(None, (comparison.why, comparison.failure)))
    spread = "" if comparison.std is None else f" ± {comparison.std:.{decimals}f}"
    return [
        comparison.row,
        comparison.column,
        pairs,
        number(comparison.baseline, decimals),
        number(comparison.ours, decimals),
        "-" if comparison.difference is None else signed(comparison.difference, decimals) + spread,
        "-" if comparison.difference is None else str(comparison.won),
        "-" if comparison.effect is None else signed(comparison.effect, 1),
        number(comparison.detectable, decimals),
        needed_seeds(comparison),
        p_text(comparison.wilcoxon.p),
        p_text(comparison.t.p),
        f"{comparison.n}, ratio {comparison.ratio:.2f}" if comparison.n else "-",
        p_text(comparison.holm),
        comparison.verdict + (f" ({notes})" if notes else ""),
    ]


def needed_seeds(comparison: Comparison) -> str:
    """Return how many seeds would find the observed difference."""
    if comparison.detectable is None:
        return "-"
    return str(comparison.seeds_needed or "no number")


def comparison_legend(comparisons: list[Comparison], test: str, alpha: float) -> str:
    """Explain how to read the table."""
    sizes = sorted({len(comparison.seeds) for comparison in comparisons})
    smallest = ", ".join(
        f"{n} pairs cannot give less than {2.0 ** (1 - n):.4g}" for n in sizes if n > 1
    )
    m = max((one.family for one in comparisons if not one.control), default=0)
    domains = ", ".join(sorted({comparison.domain for comparison in comparisons}))
    columns = len({comparison.column for comparison in comparisons})
    counted = f"Verdicts are over {columns} column{'s' * (columns > 1)} of: {domains}."
    return (
        counted
        + " "
        + COMPARISON_LEGEND.format(
            wilcoxon=smallest or "one pair has no p", test=test, m=m, alpha=alpha
        )
    )


def caution_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield a line on what can be trusted, where some pairs are few."""
    pairs = [len(one.seeds) for one in comparisons if len(one.seeds) > 1 and not one.control]
    if pairs and (fewest := min(pairs)) < ENOUGH_PAIRS:
        yield (
            f"Few seeds ({fewest}): the true deviation may be {deviation_factor(fewest):.1f} times "
            "the one shown. Read intervals and corrected p, not sizes of effects."
        )


def effect_table(over: OverSets, comparisons: list[Comparison]) -> list[list[str]]:
    """Return the cells of each row: its effect over data sets, or on each of few sets."""
    if not over.decides:
        return difference_cells(comparisons, difference_text)
    level = f"{100 * (1 - over.alpha):g} %, uncorrected"
    header = ["Method", f"Effect, {over.unit}", level, *over.domains, "Verdict", "On single sets"]
    decided = {row: set_verdicts(count) for row, count in verdict_counts(comparisons).items()}
    return [header, *(effect_cells(one, over, decided[one.row]) for one in over.effects)]


def below_each_other(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Return the cells of a line for each difference, where they do not fit side by side."""
    header = ["Method", "Column", "Difference"]
    return [header, *([one.row, one.column, difference_text(one)] for one in comparisons)]


def by_method(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Return the cells of a line for each method, with the columns where it is decided."""
    columns: dict[tuple[str, str], list[str]] = {}
    for one in comparisons:
        columns.setdefault((one.row, one.verdict), []).append(one.column)
    cells = (
        [
            row,
            *(names_text(columns.get((row, verdict), [])) or "-" for verdict in DECIDED_VERDICTS),
            set_verdicts(count, [name for name in VERDICTS if name not in DECIDED_VERDICTS]),
        ]
        for row, count in verdict_counts(comparisons).items()
    )
    return [["Method", "Better on", "Worse on", "Others"], *cells]


def verdict_count_lines(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Return the cells of a line for each method, with the number of columns by verdict."""
    rows = verdict_counts(comparisons)
    there = [name for name in VERDICTS if any(count[name] for count in rows.values())]
    header = ["Method", *there]
    return [header, *([row, *(str(count[name]) for name in there)] for row, count in rows.items())]


def effects_text(base: str, over: OverSets) -> str:
    """Return all effects in one sentence, as a description of their plot."""
    shown = [one for one in over.effects if not one.is_copy]
    numbers = ((one, signed(one.estimate, over.decimals)) for one in shown)
    parts = (
        f"{one.row} {effect} ({interval_text(one, over)}), {one.verdict}" for one, effect in numbers
    )
    return f"Effects against {base} in {over.unit}: {'; '.join(parts)}."


def interval_text(one: Effect, over: OverSets) -> str:
    """Return the interval of an effect in numbers; too few sets or seeds have none."""
    if not all(map(isfinite, one.interval)):
        return "none"
    return " to ".join(signed(end, over.decimals) for end in one.interval)


def effect_cells(one: Effect, over: OverSets, by_set: str) -> list[str]:
    """One row's effect in numbers and words."""
    means = [domain_cell(one, name, over) for name in over.domains]
    failed = f" (failed on {one.failed})" * bool(one.failed)
    return [
        one.row,
        signed(one.estimate, over.decimals),
        interval_text(one, over),
        *means,
        one.verdict + margin_mark(one, over) + control_mark(one, over) + failed,
        by_set,
    ]


def domain_cell(one: Effect, domain: str, over: OverSets) -> str:
    """Return a row's mean effect in a domain, with a star where the domain alone decides it."""
    mean = one.by_domain.get(domain)
    return "-" if mean is None else signed(mean, over.decimals) + "*" * (domain in one.alone)


def control_mark(one: Effect, over: OverSets) -> str:
    """Return the mark of a control, whose verdict is over more sets than its effect."""
    return f" (control{', over all sets' * bool(over.left_out)})" * one.control


def difference_cells(
    comparisons: Sequence[Comparison], text: Callable[[Comparison], str]
) -> list[list[str]]:
    """Return a row's differences by data set in the words of a function of each."""
    columns = list(dict.fromkeys(one.column for one in comparisons))
    rows = dict.fromkeys(one.row for one in comparisons)
    found = {(one.row, one.column): text(one) for one in comparisons}
    return [
        ["Method", *columns],
        *([row, *(found.get((row, column), "-") for column in columns)] for row in rows),
    ]


def difference_text(one: Comparison) -> str:
    """A difference in points, with half of its interval and the verdict.

    >>> one = Comparison("new", "A", "graph", difference=1.5, half_width=2.0, verdict="undecided")
    >>> difference_text(one)
    '+1.50 ± 2.00, undecided'
    """
    notes = "; ".join(filter(None, (one.why, one.failure)))
    verdict = one.verdict + (f" ({notes})" if notes else "")
    if one.difference is None:
        return verdict
    width = "" if one.half_width is None else f" ± {one.half_width:.2f}"
    return f"{signed(one.difference, 2)}{width}, {verdict}"


def brief_difference(one: Comparison) -> str:
    """Return a difference with half of its interval, and a star where it is decided.

    >>> brief_difference(Comparison("new", "A", "graph", difference=2.5, verdict="better"))
    '+2.50*'
    """
    if one.difference is None:
        return one.verdict
    width = "" if one.half_width is None else f" ± {one.half_width:.2f}"
    return f"{signed(one.difference, 2)}{width}{'*' * (one.verdict in DECIDED_VERDICTS)}"


def set_verdicts(count: Counter[str], verdicts: Sequence[str] = VERDICTS) -> str:
    """Return how many single sets have which verdict.

    >>> set_verdicts(Counter({"better": 1, "undecided": 3}))
    '1 better, 3 undecided'
    """
    return ", ".join(f"{count[name]} {name}" for name in verdicts if count[name])


def ranked(resolved: Resolved, lines: list[list[Entry]], alpha: float) -> Iterator[str]:
    """Average ranks with Friedman's test and Nemenyi's critical difference."""
    placed = ranks(resolved.table, lines, alpha)
    if placed.ranking is None:
        yield f"Ranks: {placed.why}. {placed.missing}".rstrip()
        return
    yield f"Average ranks over {', '.join(placed.columns)}, 1 the best:"
    yield ""
    yield from markdown_table(standing_lines(standings(resolved, placed)))
    yield ""
    yield f"{ranks_text(placed.ranking, alpha)} {placed.missing}".rstrip()
    if placed.failed:
        yield ""
        yield without_failures(resolved, lines, alpha)


def without_failures(resolved: Resolved, lines: list[list[Entry]], alpha: float) -> str:
    """The ranks without the columns where a method has failed, and so the last rank."""
    failed = ", ".join(ranks(resolved.table, lines, alpha).failed)
    rest = ranks(resolved.table, lines, alpha, failures=False)
    found = ", ".join(f"{one.row} {one.rank:.2f}" for one in standings(resolved, rest))
    text = "where a method has failed and with it the last rank"
    return f"Ranks without {failed}, {text}: {found or f'none, {rest.why}'}."


def standing_lines(found: list[Standing]) -> list[list[str]]:
    """Ranks with their intervals, those of domains where there are several, and gains."""
    several = [name for name in found[0].by_domain if len(found[0].by_domain) > 1]
    gains = any(one.gain is not None for one in found)
    header = ["Method", "Rank", "95 %", *several, *["Above untrained"] * gains]
    return [
        header,
        *(
            [
                one.row,
                f"{one.rank:.2f}",
                "none" if one.interval is None else "{:.2f} to {:.2f}".format(*one.interval),
                *(f"{one.by_domain[name]:.2f}" for name in several),
                *["failed" if one.gain is None else signed(one.gain, 2)] * gains,
            ]
            for one in found
        ),
    ]


def ranks_text(ranking: Ranking, alpha: float) -> str:
    """The tests over ranks in one line."""
    k, cd, p = len(ranking.ranks), ranking.critical_difference, p_text(ranking.p)
    never = f", more than any two of {k} ranks can differ" if cd >= k - 1 else ""
    return (
        f"Friedman: chi2({k - 1}) = {ranking.chi2:.2f}, p {'= ' * (p[0] not in '<>')}{p}. "
        f"Nemenyi's critical difference at {alpha}: {cd:.2f}{never}."
    )
