"""Render a comparison: Markdown for people, CSV for programs, and a terminal."""

from collections import Counter
from functools import partial
from math import isfinite
from typing import Any

from contrastbench.benchmarks.comparison import VERDICTS, Verdict
from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.comparison.over_sets import Effect, OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.report import screen
from contrastbench.benchmarks.report.words import (
    ANSWER,
    flat,
    over_domains,
    rendered,
    said,
    sentences,
    verdict_text,
)
from contrastbench.benchmarks.tables import origins
from contrastbench.benchmarks.tables.entries import signed
from contrastbench.benchmarks.tables.resolved import Resolved
from contrastbench.errors import UserError, unknown

ALL_HINT = "bench compare with --all shows every test and its power."
FORMATS = ("md", "csv")
MOST_LACKING = 3  # rows that an error names


def render_comparison(
    resolved: Resolved,
    format_: str,
    baseline: str | None = None,
    test: str | None = None,
    every_test: bool = False,
    width: int | None = None,
) -> str:
    """Return a comparison as text: a line for each row, or every test as well.

    A width asks for the answer as a terminal of so many columns shows it.

    Raises:
        UserError: unknown format, row or test, or no two rows share a seed.
    """
    if format_ not in FORMATS:
        raise unknown("format", format_, FORMATS)
    verdicts = compared(resolved, baseline, test)
    if format_ == "csv":
        return files.comma_separated(comparison_rows(verdicts), "{:.6g}")
    if width and not every_test:
        return on_screen(verdicts, width)
    about = {"v": verdicts, "effects": effect_table(verdicts), "every_test": every_test}
    return rendered("comparison.md.j2", **about, counts=count_table(verdicts), hint=ALL_HINT)


def compared(resolved: Resolved, baseline: str | None = None, test: str | None = None) -> Verdicts:
    """Return the verdicts on a table of which there is one at least.

    Raises:
        UserError: no two rows share a seed, or as `compare` does.
    """
    verdicts = compare(resolved, baseline, test)
    if verdicts.places:
        return verdicts
    if not any(line.cells for line in resolved.lines if line.name != verdicts.base):
        raise UserError(
            f"{verdicts.table.name} has no row beside {verdicts.base}: nothing can be compared"
        )
    edited = origins.edited(resolved)
    raise UserError(
        " ".join([*verdicts.table.remarks, verdicts.table.name])
        + f": no row has a seed in common with {verdicts.base} under {resolved.results} "
        f"({'; '.join(origins.lacking(resolved.cells)[:MOST_LACKING])}): run more by bench sweep, "
        + "bench merge --shipped (records that come with contrastbench), " * origins.ships(resolved)
        + "or name another row by --baseline"
        + f". {flat(str(sentences(edited_rows=edited).edited()))}" * bool(edited)
    )


def on_screen(verdicts: Verdicts, width: int) -> str:
    """Return the answer and a line for each row, within the width and 25 lines.

    Where there are verdicts over sets, the answer's last part, on single ones, gives way to rows.
    """
    (heading,), words = said(verdicts, "heading"), said(verdicts)
    if verdicts.over.decides:
        words = said(verdicts, *ANSWER[:-1])
        heading += f": effect in {verdicts.over.unit}, uncorrected 95 %"
    rows, drops, parts = screen_table(verdicts, width)
    notes = ["", *said(verdicts, *parts), ALL_HINT]
    return screen.page(" ".join(words), heading, rows, drops, notes, width)


def screen_table(verdicts: Verdicts, width: int) -> tuple[screen.Cells, screen.Drops, list[str]]:
    """Return the rows for a width, columns that go where they do not fit, and parts of the notes.

    Where verdicts are by domain, marks there tell them, so the verdict goes first.
    """
    over, rows = verdicts.over, effect_table(verdicts)
    domains = len(over.domains) * over.on_these
    if not over.decides:
        return rows if screen.fits(rows, width) else count_table(verdicts), (), ["notes"]
    rows[0][1:3] = "Effect", "95 %"
    without_sets = [row[:-1] for row in rows]
    for shown in (rows, without_sets):
        if screen.fits(shown, width):
            return shown, (), ["notes"]
    by_domain = [[row[1], *row[-1 - domains : -1]] for row in without_sets]
    if domains > 1 and screen.fits(by_domain, width - screen.NARROWEST // 5 - 2):
        named = [[row[0], *cells] for row, cells in zip(rows, by_domain, strict=True)]
        return named, (), ["caution", "marks"]
    return without_sets, [rows[0][3:-2], rows[0][2:3]], ["caution"]


def effect_table(verdicts: Verdicts) -> list[list[str]]:
    """Return the cells of each row: its effect over data sets, or on each of few sets."""
    over = verdicts.over
    if not over.decides:
        return difference_table(verdicts)
    drawn, counts = ["Over sets"] * over.tells_of_sets, verdicts.counts
    columns = [f"Effect, {over.unit}", "95 %, uncorrected", *drawn, *over.domains]
    header = ["Method", *columns, "Verdict", "On single sets"]
    return [header, *(effect_cells(effect, over, counts[effect.row]) for effect in over.effects)]


def effect_cells(effect: Effect, over: OverSets, count: Counter[str]) -> list[str]:
    """Return one row's effect in numbers and words; a star where a domain shows it."""
    show = partial(signed, decimals=over.decimals)
    within = f", within {over.margin:g} {'%' if over.gains else 'points'}" * effect.is_small
    control = f" (control{', over all sets' * bool(over.left_out)})" * bool(effect.must)
    untrained = len(effect.untrained_in) == len(effect.by_domain)
    return [
        *(effect.name, show(effect.estimate), interval_text(effect.interval, over)),
        *[interval_text(effect.over_sets, over)] * over.tells_of_sets,
        *(domain_text(effect, name, over) for name in over.domains),
        ("worse than untrained" if untrained else over_domains(effect))
        + within
        + control
        + f" (failed on {effect.failed})" * bool(effect.failed),
        set_verdicts(count),
    ]


def interval_text(ends: tuple[float, float], over: OverSets) -> str:
    """Return the interval of an effect in numbers; too few sets or seeds have none."""
    if not all(map(isfinite, ends)):
        return "none"
    return " to ".join(signed(end, over.decimals) for end in ends)


def domain_text(effect: Effect, name: str, over: OverSets) -> str:
    """Return the effect in a domain, half of its interval, and a mark if it is decided.

    A star: it differs; an equals sign: it is equal.
    """
    mean, part = signed(effect.by_domain.get(name), over.decimals), effect.parts.get(name)
    if part is None:
        return mean
    half = (part.interval[1] - part.interval[0]) / 2
    width = f"{half:.{over.decimals}f}" if round(half, over.decimals) else f"{half:.1g}"
    mark = "*" * (name in effect.decided) + " =" * (part.verdict == Verdict.EQUAL)
    return mean + f" ± {width}" * isfinite(half) + mark


def count_table(shown: Verdicts) -> list[list[str]]:
    """Return the cells of a line for each method, with the number of columns by verdict."""
    lines = ([row, *(str(n[name]) for name in shown.found)] for row, n in shown.counts.items())
    return [["Method", *shown.found], *lines]


def difference_table(verdicts: Verdicts) -> list[list[str]]:
    """Return the cells of each row: its difference on each data set."""
    columns = list(dict.fromkeys(place.column for place in verdicts.places))
    shown = {(place.row, place.column): difference_text(place) for place in verdicts.places}
    controls = {effect.row for effect in verdicts.over.effects if effect.must}
    names = {row: row + " (control)" * (row in controls) for row in verdicts.counts}
    lines = ([name, *(shown.get((row, c), "-") for c in columns)] for row, name in names.items())
    return [["Method", *columns], *lines]


def difference_text(place: Comparison) -> str:
    """Return a difference in points, with half of its interval and the verdict.

    >>> place = Comparison("new", "A", "graph", difference=1.5, half_width=2.0, verdict="undecided")
    >>> difference_text(place)
    '+1.50 ± 2.00, undecided'
    """
    if place.difference is None:
        return verdict_text(place)
    width = "" if place.half_width is None else f" ± {place.half_width:.2f}"
    return f"{signed(place.difference, 2)}{width}, {verdict_text(place)}"


def set_verdicts(count: Counter[str]) -> str:
    """Return how many single sets have which verdict.

    >>> set_verdicts(Counter({"better": 1, "undecided": 3}))
    '1 better, 3 undecided'
    """
    return ", ".join(f"{count[name]} {name}" for name in VERDICTS if count[name])


def comparison_rows(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Return the values of each comparison by name, None for no value, for CSV and data frames."""
    return [
        {
            "table": verdicts.table.name,
            "method": place.row,
            "against": verdicts.base,
            "column": place.column,
            "domain": place.domain,
            "same_as": place.same_as,
            "seeds": " ".join(map(str, place.seeds)),
            "unpaired": place.unpaired,
            "baseline_mean": place.baseline,
            "method_mean": place.ours,
            "difference": place.difference,
            "difference_std": place.std,
            "difference_half_width": place.half_width,
            "detectable": place.detectable,
            "p_t": place.t.p,
            "t_n": place.n,
            "t_ratio": place.ratio,
            "p_holm": place.holm,
            "control": place.control,
            "verdict": str(place.verdict),
            "why": place.why,
            "failure": place.failure,
        }
        for place in verdicts.places
    ]
