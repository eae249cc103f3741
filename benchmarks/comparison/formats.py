"""A comparison as text: Markdown for people, CSV for programs."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.comparison.compare import (
    NO_BASE,
    Comparison,
    baseline_row,
    compare,
    counts,
    ranks,
)
from contrastbench.benchmarks.comparison.over_sets import (
    OverSets,
    over_sets,
    over_sets_text,
    set_of,
    sight_text,
    sights,
)
from contrastbench.benchmarks.comparison.standing import Standing, standings
from contrastbench.benchmarks.comparison.statistics import ALPHA, Ranking
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables import latex
from contrastbench.benchmarks.tables.entries import Entry, entries
from contrastbench.benchmarks.tables.formats import as_table, cell
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.errors import UserError, unknown

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
FORMATS = ("md", "csv", "latex")
VERDICTS = ("win", "tie", "loss", "untested", "failed")


def render(
    table: Table,
    results: Path,
    format_: str,
    baseline: str | None = None,
    test: str = "t",
    alpha: float = ALPHA,
) -> str:
    """The comparison as text.

    Raises:
        UserError: unknown format, row or test, or no two rows share a seed.
    """
    if format_ not in FORMATS:
        raise unknown("format", format_, FORMATS)
    comparisons = compare(table, results, baseline, test, alpha)
    base = baseline_row(table, baseline).name
    if not comparisons:
        raise UserError(
            f"{table.name}: no row has a seed in common with {base} under {results}: run more, "
            "bench merge --shipped (records that come with contrastbench), or --baseline"
        )
    if format_ == "csv":
        return comma_separated(table, base, comparisons)
    if format_ == "latex":
        return for_papers(table, base, comparisons, test, alpha)
    over = over_sets(comparisons, test, alpha)
    return "\n".join(
        [
            cell(answer(base, comparisons, over)),
            "",
            *markdown(table, base, comparisons),
            "",
            legend(comparisons, test, alpha),
            "",
            *over_lines(base, over),
            cell(sight_text(sights(comparisons), over)),
            "",
            *ranked(table, list(entries(table, results)), alpha),
            "",
        ]
    )


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


def number(value: float | None, decimals: int) -> str:
    """A number or a dash."""
    return "-" if value is None else f"{value:.{decimals}f}"


def signed(value: float, decimals: int) -> str:
    """With its sign, which what rounds to zero has none of.

    >>> signed(2.25, 2), signed(-0.71, 1), signed(-0.01, 1)
    ('+2.25', '-0.7', '0.0')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def p_text(p: float | None) -> str:
    """A p-value as papers print it."""
    return "-" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


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


def over_lines(base: str, over: Sequence[OverSets]) -> Iterator[str]:
    """Methods over data sets; nothing where there are too few of these."""
    if not over:
        return
    header = ["Method", "Sets", "Won", "Mean difference", "95 %", "Detectable", "p", "Holm p", ""]
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
        yield f"Ranks: {placed.why}."
        return
    yield f"Average ranks over {', '.join(placed.columns)}, 1 the best:"
    yield ""
    yield from as_table(standing_lines(standings(table, placed)))
    yield ""
    yield ranks_text(placed.ranking, alpha) + (
        f" Left out: {', '.join(placed.left_out)}." if placed.left_out else ""
    )
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


def for_papers(
    table: Table, base: str, comparisons: list[Comparison], test: str, alpha: float
) -> str:
    """A table for LaTeX: differences with their intervals, wins and losses in bold."""
    interval = f"± half of the {100 * (1 - alpha):g} % interval of the corrected t-test"
    caption = latex.text(
        f"{table.title}. Differences from {base} in percent points {interval}; p of the {test} "
        f"test after Holm's correction. "
        + answer(base, comparisons, over_sets(comparisons, test, alpha))
    )
    header = ["Method", "Column", "Seeds", "Difference", "$p$", "Verdict"]
    body = [list(latex_cells(one, table.decimals)) for one in comparisons]
    return latex.tabular(f"{table.name}-comparison", caption, header, body)


def latex_cells(one: Comparison, decimals: int) -> Iterator[str]:
    """One comparison."""
    decided = one.verdict in ("win", "loss")
    yield from (latex.text(one.row), latex.text(one.column), str(len(one.seeds)))
    width = "" if one.half_width is None else f" ± {one.half_width:.{decimals}f}"
    shown = "-" if one.difference is None else signed(one.difference, decimals) + width
    yield latex.bold(shown, decided)
    yield latex.text(p_text(one.holm))
    yield latex.bold(" ".join(filter(None, (one.verdict, one.failure))), decided)


def comma_separated(table: Table, base: str, comparisons: list[Comparison]) -> str:
    """For programs."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(as_dict(table, base, comparisons[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(as_dict(table, base, comparison) for comparison in comparisons)
    return out.getvalue()


def as_dict(table: Table, base: str, comparison: Comparison) -> dict[str, Any]:
    """One comparison, flat."""
    return {
        "table": files.no_formula(table.name),
        "method": files.no_formula(comparison.row),
        "against": files.no_formula(base),
        "column": files.no_formula(comparison.column),
        "domain": comparison.domain,
        "seeds": " ".join(map(str, comparison.seeds)),
        "unpaired": comparison.unpaired,
        "baseline_mean": rounded(comparison.baseline),
        "method_mean": rounded(comparison.ours),
        "difference": rounded(comparison.difference),
        "difference_std": rounded(comparison.std),
        "won": "" if comparison.difference is None else comparison.won,
        "effect": rounded(comparison.effect),
        "difference_half_width": rounded(comparison.half_width),
        "detectable": rounded(comparison.detectable),
        "seeds_needed": comparison.seeds_needed or "",
        "p_wilcoxon": rounded(comparison.wilcoxon.p),
        "p_t": rounded(comparison.t.p),
        "t_n": comparison.n,
        "t_ratio": rounded(comparison.ratio),
        "p_holm": rounded(comparison.holm),
        "verdict": comparison.verdict,
        "why": comparison.why,
        "failure": comparison.failure,
    }


def rounded(value: float | None) -> str:
    """Six significant digits, or nothing."""
    return "" if value is None else f"{value:.6g}"
