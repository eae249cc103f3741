"""Render a comparison as Markdown, LaTeX, CSV or JSON, and for a terminal."""

import json
from math import isfinite
from typing import Any

from contrastbench.benchmarks.comparison import DECIDED, Verdict
from contrastbench.benchmarks.comparison.compare import Verdicts, compare
from contrastbench.benchmarks.comparison.over_sets import Judged, Part
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.report import latex, words
from contrastbench.benchmarks.tables.entries import signed
from contrastbench.benchmarks.tables.resolved import Resolved, lacking
from contrastbench.errors import UserError, check_known

ALL_HINT = "bench compare with --all shows every test and its power."
FORMATS = ("md", "csv", "json", "latex")
MOST_LACKING = 3  # rows that an error names
Cells = list[list[str]]


def render_comparison(
    resolved: Resolved,
    format_: str,
    baseline: str | None = None,
    every_test: bool = False,
    width: int | None = None,
) -> str:
    """Return a comparison as text; a width asks for it as a terminal of so many columns has it."""
    check_known("format", format_, FORMATS)
    verdicts = compared(resolved, baseline)
    if format_ == "csv":
        return files.comma_separated(comparison_rows(verdicts), "{:.6g}")
    if format_ == "json":
        return json.dumps(as_values(verdicts), indent=2) + "\n"
    if format_ == "latex":
        return comparison_latex(verdicts)
    if width and not every_test:
        return on_screen(verdicts, width)
    about = {"v": verdicts, "effects": effect_table(verdicts), "every_test": every_test}
    return words.rendered("comparison.md.j2", **about, hint=ALL_HINT)


def compared(resolved: Resolved, baseline: str | None = None) -> Verdicts:
    """Return the verdicts on a table of which there is one at least."""
    verdicts = compare(resolved, baseline)
    if verdicts.places:
        return verdicts
    if not any(line.cells for line in resolved.lines if line.name != verdicts.base):
        raise UserError(
            f"{verdicts.table.name} has no row beside {verdicts.base}: nothing can be compared"
        )
    lacks = "; ".join(lacking(resolved.cells, words.names)[:MOST_LACKING])
    raise UserError(
        " ".join([*verdicts.table.remarks, verdicts.table.name])
        + f": no row has a seed in common with {verdicts.base} under {resolved.results} "
        f"({lacks}): run more by bench sweep, "
        + "bench merge --shipped (records that come with contrastbench), " * resolved.ships
        + "or name another row by --baseline"
        + f". {words.flat(str(words.sentences(r=resolved).edited()))}" * bool(resolved.edited)
    )


def on_screen(verdicts: Verdicts, width: int) -> str:
    from contrastbench.benchmarks.report import screen  # brings rich

    tables = [effect_table(verdicts)]
    if verdicts.decides:
        # domains go together, since some without the others would mislead
        for names in (["Best of 1, 4, 8, 16"], ["Hangs on"], verdicts.domains):
            kept = [i for i, name in enumerate(tables[-1][0]) if name not in names]
            tables.append([[row[i] for i in kept] for row in tables[-1]])
    else:
        places = ([one.row, one.column, difference_text(one)] for one in verdicts.places)
        tables.append([["Method", "Data set", "Difference"], *places])
    (heading,), answer = words.said(verdicts, "heading"), " ".join(words.said(verdicts))
    return screen.page(answer, heading, tables, ALL_HINT, width)


def effect_table(verdicts: Verdicts) -> Cells:
    """Return the cells of each row: its effect over data sets, or on each of few sets."""
    if not verdicts.decides:
        return difference_table(verdicts)
    curves = any(row.curve for row in verdicts.rows)
    header = [f"Effect, {verdicts.counted.scale.unit}", *verdicts.domains, "Verdict", "Hangs on"]
    rows = [effect_cells(row, verdicts, curves) for row in (*verdicts.rows, *verdicts.controls)]
    return [["Method", *header, *["Best of 1, 4, 8, 16"] * curves], *rows]


def effect_cells(row: Judged, verdicts: Verdicts, curves: bool) -> list[str]:
    """Return one row's effect in numbers and words.

    In a domain a star says that it shows a difference, and an equals sign that it is equal there.
    """
    decimals = verdicts.counted.scale.decimals
    by_domain = [row.by_domain.get(name) for name in verdicts.domains]
    small = row.over.verdict in DECIDED and (row.over.holm_equal or 0.0) <= ALPHA
    within = f", within {verdicts.counted.scale.margin:g}" * small
    failed = f" (failed on {len(row.effect.failed)})" * bool(row.effect.failed)
    turning = f"{len(row.hangs_on)} of {row.tried}: {words.turned(row.hangs_on)}"
    doubts = turning if row.hangs_on else "none" * bool(row.tried)
    curve = ", ".join(signed(value, decimals) for value in row.curve.values())
    verdict = "the same loss" if row.effect.same else row.over.verdict
    return [
        row.effect.name,
        part_text(row.over, decimals),
        *("-" if part is None else part_text(part, decimals, marks=True) for part in by_domain),
        verdict + within + " (control)" * bool(row.must) + failed,
        doubts,
        *[curve or "-"] * curves,
    ]


def part_text(part: Part, decimals: int, marks: bool = False) -> str:
    """Return a mean with half of its interval, and marks of its verdict where they are asked for.

    >>> part_text(Part(1.5, 1.0, 4.0, verdict=Verdict.BETTER), 1, marks=True)
    '+1.5 ± 2.8*'
    """
    mark = {Verdict.EQUAL: " =", Verdict.BETTER: "*", Verdict.WORSE: "*"}.get(part.verdict, "")
    half = f" ± {part.half:.{decimals}f}" if isfinite(part.half) else ""
    return signed(part.mean, decimals) + half + mark * marks


def difference_table(verdicts: Verdicts) -> Cells:
    columns = list(dict.fromkeys(place.column for place in verdicts.places))
    shown = {(place.row, place.column): difference_text(place) for place in verdicts.places}
    controls = {control.effect.row for control in verdicts.controls}
    rows = dict.fromkeys(place.row for place in verdicts.places)
    lines = (
        [row + " (control)" * (row in controls), *(shown.get((row, c), "-") for c in columns)]
        for row in rows
    )
    return [["Method", *columns], *lines]


def difference_text(place: Comparison) -> str:
    """Return a difference in points, with half of its interval and the verdict.

    >>> tested = {"difference": 1.5, "spread": 2.0, "n": 4, "verdict": "undecided"}
    >>> difference_text(Comparison("new", "A", "graph", **tested))
    '+1.50 ± 3.18, undecided'
    """
    if place.difference is None:
        return words.verdict_text(place)
    width = "" if place.half_width is None else f" ± {place.half_width:.2f}"
    return f"{signed(place.difference, 2)}{width}, {words.verdict_text(place)}"


def comparison_latex(verdicts: Verdicts) -> str:
    """Return the table for LaTeX: bold only where a verdict says better, or worse."""
    head, *rows = effect_table(verdicts)
    decided = {row.effect.name for row in verdicts.rows if row.over.verdict in DECIDED}
    cells = [
        [latex.bold(cell) if row[0] in decided else latex.latex_text(cell) for cell in row]
        for row in rows
    ]
    label, comments = latex.label(f"{verdicts.table.name}-compared"), words.said(verdicts)
    caption = f"{verdicts.table.title}, against {verdicts.base}. Bold: a verdict over data sets."
    about = {"label": label, "comments": comments, "caption": caption}
    return words.rendered("booktabs.tex.j2", columns=head, rows=cells, **about) + "\n"


def as_values(verdicts: Verdicts) -> dict[str, Any]:
    return {
        "table": verdicts.table.name,
        "against": verdicts.base,
        "unit": verdicts.counted.scale.unit,
        "answer": words.said(verdicts),
        "rows": [row_values(row) for row in (*verdicts.rows, *verdicts.controls)],
        "places": comparison_rows(verdicts),
    }


def row_values(row: Judged) -> dict[str, Any]:
    return {
        "methods": [row.effect.row, *row.effect.also],
        "control": row.effect.control,
        **part_values(row.over),
        "domains": {name: part_values(part) for name, part in row.by_domain.items()},
        "sets": {"/".join(name): effect for name, effect in row.effect.by_set.items()},
        "hangs_on": dict(row.hangs_on),
        "tried": row.tried,
        "curve": dict(row.curve),
    }


def part_values(part: Part) -> dict[str, Any]:
    half = part.half if isfinite(part.half) else None
    about = {"effect": part.mean, "half_width": half, "freedom": part.freedom}
    p = {"p_holm": part.holm, "p_holm_equal": part.holm_equal}
    return {**about, **p, "verdict": str(part.verdict)}


def comparison_rows(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Return the values of each comparison by name, None for no value, for CSV and data frames.

    Each has the result of its row over data sets, and what the verdict hangs on.
    """
    judged = (*verdicts.rows, *verdicts.controls)
    over = {name: one for one in judged for name in (one.effect.row, *one.effect.also)}
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
            **over_sets_values(over.get(place.row)),
        }
        for place in verdicts.places
    ]


def over_sets_values(row: Judged | None) -> dict[str, Any]:
    found = part_values(row.over) if row else {}
    names = ("effect", "half_width", "p_holm", "verdict")
    values = {f"over_sets_{name}": found.get(name) for name in names}
    return {**values, "hangs_on": words.turned(row.hangs_on) if row else ""}
