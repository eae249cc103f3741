"""A comparison for people to read: each place, methods over data sets, ranks."""

from collections.abc import Iterator, Sequence

from contrastbench.benchmarks.comparison.compare import Comparison, counts
from contrastbench.benchmarks.comparison.numbers import number, p_text, signed
from contrastbench.benchmarks.comparison.over_sets import OverSets
from contrastbench.benchmarks.comparison.ranks import ranks
from contrastbench.benchmarks.comparison.standing import Standing, standings
from contrastbench.benchmarks.comparison.statistics import Ranking
from contrastbench.benchmarks.tables.entries import Entry
from contrastbench.benchmarks.tables.formats import as_table
from contrastbench.benchmarks.tables.table import Table

LEGEND = """\
Pairs are the seeds that both have. Wilcoxon: signed-rank over seeds; {wilcoxon}.
t: over the same folds of the same seeds, or over seeds where there are no folds, corrected for
overlapping training sets by the ratio of test to training size (Nadeau and Bengio 2003; ratio 0:
all seeds share one split).
Won: in how many of the pairs ours is above. Effect: the difference over its standard deviation over
seeds (Cohen's d of pairs).
Detectable: the smallest true difference that this t-test finds with a chance of 80 % at level
{alpha}, before Holm's correction. Seeds needed: so that it finds one of the size that is seen; no
number is enough where folds overlap too much for it.
Holm: p of the {test} test over all {m} comparisons of this table. Win, loss: Holm p <= {alpha};
tie: above; untested: no p, or so few pairs that none could be that small; failed: no seed has a
number."""
VERDICTS = ("win", "tie", "loss", "untested", "failed")


def markdown(table: Table, base: str, comparisons: list[Comparison]) -> Iterator[str]:
    """For people."""
    yield from (f"### {table.name} against {base}", "")
    header = [
        "Method",
        "Column",
        "Pairs",
        "Baseline",
        "Ours",
        "Difference",
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
    yield from as_table(
        [header, *(cells(comparison, table.decimals) for comparison in comparisons)]
    )
    yield ""
    lines = [
        [row, *(str(count[name]) for name in VERDICTS)]
        for row, count in counts(comparisons).items()
    ]
    yield from as_table([["Method", *VERDICTS], *lines])


def cells(comparison: Comparison, decimals: int) -> list[str]:
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
        seeds_text(comparison),
        p_text(comparison.wilcoxon.p),
        p_text(comparison.t.p),
        f"{comparison.n}, ratio {comparison.ratio:.2f}" if comparison.n else "-",
        p_text(comparison.holm),
        comparison.verdict + (f" ({notes})" if notes else ""),
    ]


def seeds_text(comparison: Comparison) -> str:
    """How many seeds would find the difference that is seen."""
    if comparison.detectable is None:
        return "-"
    return str(comparison.seeds_needed or "no number")


def legend(comparisons: list[Comparison], test: str, alpha: float) -> str:
    """How to read it."""
    sizes = sorted({len(comparison.seeds) for comparison in comparisons})
    smallest = ", ".join(
        f"{n} pairs cannot give less than {2.0 ** (1 - n):.4g}" for n in sizes if n > 1
    )
    m = sum(comparison.holm is not None for comparison in comparisons)
    domains = ", ".join(sorted({comparison.domain for comparison in comparisons}))
    columns = len({comparison.column for comparison in comparisons})
    counted = f"Wins, ties and losses are over {columns} column{'s' * (columns > 1)} of: {domains}."
    return (
        counted
        + " "
        + LEGEND.format(wilcoxon=smallest or "one pair has no p", test=test, m=m, alpha=alpha)
    )


def over_lines(base: str, over: Sequence[OverSets], alpha: float) -> Iterator[str]:
    """Methods over data sets; nothing where there are too few of these."""
    if not over:
        return
    level = f"{100 * (1 - alpha):g} %"
    header = ["Method", "Sets", "Won", "Mean difference", level, "Detectable", "p", "Holm p", ""]
    yield f"Against {base} over data sets, each of which counts once:"
    yield ""
    yield from as_table([header, *(over_cells(one) for one in over)])
    yield ""


def over_cells(one: OverSets) -> list[str]:
    """One method over data sets in words and numbers."""
    sets = f"{len(one.differences)}" + f" (failed on {one.failed})" * bool(one.failed)
    return [
        one.row,
        sets,
        str(one.won),
        signed(one.mean, 2),
        "-" if one.half_width is None else f"± {one.half_width:.2f}",
        number(one.detectable, 2),
        p_text(one.test.p),
        p_text(one.holm),
        one.verdict,
    ]


def ranked(table: Table, lines: list[list[Entry]], alpha: float) -> Iterator[str]:
    """Average ranks with Friedman's test and Nemenyi's critical difference."""
    placed = ranks(table, lines, alpha)
    if placed.ranking is None:
        yield f"Ranks: {placed.why}. {placed.missing}".rstrip()
        return
    yield f"Average ranks over {', '.join(placed.columns)}, 1 the best:"
    yield ""
    yield from as_table(standing_lines(standings(table, placed)))
    yield ""
    yield f"{ranks_text(placed.ranking, alpha)} {placed.missing}".rstrip()
    if placed.failed:
        yield ""
        yield without_failures(table, lines, alpha)


def without_failures(table: Table, lines: list[list[Entry]], alpha: float) -> str:
    """The ranks without the columns where a method has failed, and so the last rank."""
    failed = ", ".join(ranks(table, lines, alpha).failed)
    rest = ranks(table, lines, alpha, failures=False)
    found = ", ".join(f"{one.row} {one.rank:.2f}" for one in standings(table, rest))
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
                f"{one.interval[0]:.2f} to {one.interval[1]:.2f}",
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
        f"Friedman: chi2({k - 1}) = {ranking.chi2:.2f}, p {'= ' * (p[0] != '<')}{p}. "
        f"Nemenyi's critical difference at {alpha}: {cd:.2f}{never}."
    )
