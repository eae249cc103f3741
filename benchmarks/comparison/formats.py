"""A comparison as text: Markdown for people, LaTeX for papers, CSV for programs."""

from collections.abc import Iterable, Iterator
from typing import Any

from contrastbench.benchmarks.comparison import screen
from contrastbench.benchmarks.comparison.compare import (
    Comparison,
    baseline_row,
    compare_rows,
    on_single_sets,
    same_runs,
)
from contrastbench.benchmarks.comparison.controls import over_sets_of
from contrastbench.benchmarks.comparison.detectable import sight_text, sights
from contrastbench.benchmarks.comparison.effects import Effect, OverSets
from contrastbench.benchmarks.comparison.headline import answer_parts, opening_lines
from contrastbench.benchmarks.comparison.markdown import (
    DECIDED_VERDICTS,
    below_each_other,
    brief_difference,
    by_method,
    caution_lines,
    comparison_legend,
    comparison_markdown,
    difference_cells,
    effect_table,
    ranked,
    verdict_count_lines,
)
from contrastbench.benchmarks.comparison.numbers import p_text, signed
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.comparison.wording import names_text
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables import latex, origins
from contrastbench.benchmarks.tables.choices import (
    NOTHING_TO_CHOOSE,
    as_given,
    chosen_losses,
    is_hardly_tuned,
)
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table
from contrastbench.benchmarks.tables.resolved import Line, Resolved
from contrastbench.benchmarks.tables.table import Selection
from contrastbench.errors import UserError, unknown

ALL_HINT = "bench compare with --all shows every test, power and ranks."
FORMATS = ("md", "csv", "latex")


def render_comparison(
    resolved: Resolved,
    format_: str,
    baseline: str | None = None,
    test: str | None = None,
    alpha: float = ALPHA,
    every_test: bool = False,
    width: int | None = None,
) -> str:
    """The comparison as text: the answer with a line for each row, or every test as well.

    Without a test named, the table's own or the signed-rank test judges over data sets. The t-test
    judges on single ones, unless signed ranks are asked for.
    A width asks for the answer as a terminal of so many columns shows it.

    Raises:
        UserError: unknown format, row or test, or no two rows share a seed.
    """
    if format_ not in FORMATS:
        raise unknown("format", format_, FORMATS)
    base, comparisons = baseline_comparisons(resolved, baseline, test, alpha)
    if format_ == "csv":
        return comparison_csv(resolved, base, comparisons)
    if format_ == "latex":
        return comparison_latex(resolved, base, comparisons, test, alpha)
    table, over = resolved.table, over_sets_of(resolved, base, comparisons, alpha, test)
    said = answer_lines(resolved, base, comparisons, over)
    starred = ["A star: that domain alone shows a difference."] * any(map(is_starred, over.effects))
    about = [*starred, origins.origin_line(resolved)]
    notes = [*caution_lines(comparisons), *filter(None, about)]
    if width and not every_test:
        heading = f"{table.name} against {base}{plus_minus(over, alpha)}"
        return on_screen(said, heading, over, comparisons, notes, width)
    lines = [
        escaped_cell(" ".join(said)),
        "",
        f"### {escaped_cell(f'{table.name} against {base}{plus_minus(over, alpha)}')}",
        "",
        *markdown_table(effect_table(over, comparisons)),
        "",
        *(line for note in notes for line in (escaped_cell(note), "")),
    ]
    if not every_test:
        return "\n".join([*lines, ALL_HINT, ""])
    single = on_single_sets(table, test)
    tests = [
        *comparison_markdown(table, comparisons),
        "",
        comparison_legend(comparisons, single, alpha),
        "",
    ]
    sight = [escaped_cell(sight_text(sights(comparisons))), ""] * (single == "t")
    rest = ranked(resolved, list(entries(resolved)), alpha)
    return "\n".join([*lines, *tests, *sight, *rest, ""])


def is_starred(one: Effect) -> bool:
    """Return whether one domain alone shows that a row differs from the baseline."""
    return bool(one.alone)


def plus_minus(over: OverSets, alpha: float) -> str:
    """Say what stands behind the differences of single columns, where these are the table."""
    interval = f"{100 * (1 - alpha):g} % interval, uncorrected"
    return "" if over.decides else f": differences ± half of the {interval}"


def on_screen(
    said: list[str],
    heading: str,
    over: OverSets,
    comparisons: list[Comparison],
    notes: list[str],
    width: int,
) -> str:
    """Return the answer and a line for each row, within the width and 25 lines.

    Where there are verdicts over sets, the answer's last part, on single ones, gives way to rows.
    """
    drops: list[list[str]] = []
    parts, aside = (said[:-1], said[-1]) if over.decides and len(said) > 1 else (said, "")
    if over.decides:
        rows = effect_table(over, comparisons)
        level = f"{100 * (1 - over.alpha):g} %"
        heading += f": effect in {over.unit}, uncorrected {level}"
        rows[0][1:3] = "Effect", level
        drops = [rows[0][-1:], rows[0][3:-2], rows[0][2:3]]
    else:
        below = [below_each_other(comparisons)] * (len(comparisons) <= screen.TABLE_ROWS)
        brief = difference_cells(comparisons, brief_difference)
        shapes = [effect_table(over, comparisons), *below, brief, by_method(comparisons)]
        found = (table for table in shapes if screen.fits(table, width))
        rows = next(found, verdict_count_lines(comparisons))
        heading += " (* is decided)" * (rows is brief)
    notes = ["", *notes, ALL_HINT]
    return screen.page(parts, aside, heading, rows, drops, notes, width)


def answer_text(
    resolved: Resolved,
    baseline: str | None = None,
    test: str | None = None,
    alpha: float = ALPHA,
) -> str:
    """Return the answer that comes before everything else."""
    base, comparisons = baseline_comparisons(resolved, baseline, test, alpha)
    return answer_sentences(
        resolved, base, comparisons, over_sets_of(resolved, base, comparisons, alpha, test)
    )


def baseline_comparisons(
    resolved: Resolved, baseline: str | None, test: str | None, alpha: float
) -> tuple[str, list[Comparison]]:
    """Return the baseline's name and all comparisons with it, of which there is one at least."""
    comparisons = compare_rows(resolved, baseline, test, alpha)
    base = baseline_row(resolved, baseline).name
    if comparisons:
        return base, comparisons
    if not any(line.cells for line in resolved.lines if line.name != base):
        raise UserError(f"{resolved.table.name} has no row beside {base}: nothing can be compared")
    raise UserError(
        " ".join([*resolved.table.remarks, resolved.table.name])
        + f": no row has a seed in common with {base} under "
        f"{resolved.results}: run more, "
        "bench merge --shipped (records that come with contrastbench), or --baseline"
        + "".join(f". {line}" for line in [origins.edited_line(resolved)] if line)
    )


def answer_sentences(
    resolved: Resolved, base: str, comparisons: list[Comparison], over: OverSets
) -> str:
    """Return the verdicts on rows that are asked for, the settings that differ, and the answer."""
    return " ".join(answer_lines(resolved, base, comparisons, over))


def answer_lines(
    resolved: Resolved, base: str, comparisons: list[Comparison], over: OverSets
) -> list[str]:
    """Return the same in parts of a sentence or two, a line each."""
    first = opening_lines(resolved.table, base, comparisons, over)
    return [*first, *tuning_notes(resolved, base), *answer_parts(base, comparisons, over)]


def tuning_notes(resolved: Resolved, base: str) -> Iterator[str]:
    """Say which rows were not tuned as others were, or that temperatures differ untuned."""
    table = resolved.table
    for line in resolved.lines:
        if line.row.beside and not line.repeats:
            yield f"{line.name} is not searched: it has the temperature and rate that {base} chose."
        if line.name in table.asked and as_given(resolved, line):
            yield f"{line.name} is run {NOTHING_TO_CHOOSE}."
    if resolved.selection == Selection.VALIDATION and (alike := chose_baseline(resolved, base)):
        every = all(n == of for n, of in alike.values())
        shares = [row + f" ({n} of {of})" * (not every) for row, (n, of) in alike.items()]
        where = "each set" if every else "most sets"
        yield (
            f"On {where} {names_text(shares)} chose {base}'s own loss, if not its settings: such "
            "effects are those of the search."
        )
    if untuned := [line.name for line in resolved.lines if is_hardly_tuned(line)]:
        yield f"{names_text(untuned)}: most trials score alike, so the search had little to find."
    if table.sweep and not table.tune:
        found = row_temperatures(resolved)
        own = found.get(base)
        others = [f"{row} at {value}" for row, value in found.items() if value != own]
        if own and others:
            yield f"Untuned, at unequal temperatures: {base} at {own}, {names_text(others)}."


def chose_baseline(resolved: Resolved, base: str) -> dict[str, tuple[int, int]]:
    """Return the losses that chose to be the baseline's loss on most sets, and on how many.

    A control changes more than the loss, so beside it there are none.
    """
    theirs = next(line for line in resolved.lines if line.name == base)
    if theirs.control:
        return {}
    others = (line for line in resolved.lines if line.row.loss != theirs.row.loss)
    counts = {line.name: chose_loss_of(theirs, line) for line in others if not line.control}
    return {row: (n, of) for row, (n, of) in counts.items() if 2 * n > of}


def chose_loss_of(theirs: Line, line: Line) -> tuple[int, int]:
    """Return on how many sets a row chose the loss of another one, and on how many it has run.

    The first is 0 where it always chose the very runs of the other one, which nothing is said of.
    """
    own = [one for one in line.cells.values() if one.ok and not one.same_as]
    alike = [one for one in own if chosen_losses(one) == {theirs.row.loss}]
    pairs = [(theirs.cells[one.column], one) for one in alike if one.column in theirs.cells]
    others = any(not same_runs(a.experiments, b.experiments) for a, b in pairs)
    return (len(alike), len(own)) if others else (0, len(own))


def row_temperatures(resolved: Resolved) -> dict[str, str]:
    """The temperature of each row that has one, the same in all columns or not."""
    found: dict[str, str] = {}
    for line in (line for line in resolved.lines if not line.control):
        values = {
            str(value)
            for cell in line.cells.values()
            for key, value in cell.work.loss.complete.params.items()
            if key.rpartition(".")[2] == "temperature"
        }
        if values:
            found[line.name] = ", ".join(sorted(values))
    return found


def comparison_latex(
    resolved: Resolved, base: str, comparisons: list[Comparison], test: str | None, alpha: float
) -> str:
    """A table for LaTeX: differences with their intervals, decided ones in bold."""
    table = resolved.table
    interval = f"± half of the {100 * (1 - alpha):g} % interval of the corrected t-test"
    caption = latex.latex_text(
        f"{table.title}. Differences from {base} in percent points {interval}; p of the "
        f"{on_single_sets(table, test)} test after Holm's correction. "
        + answer_sentences(
            resolved, base, comparisons, over_sets_of(resolved, base, comparisons, alpha, test)
        )
    )
    header = ["Method", "Column", "Seeds", "Difference", "$p$", "Verdict"]
    body = [list(latex_cells(one, table.decimals)) for one in comparisons]
    return latex.tabular(f"{table.name}-comparison", caption, header, body)


def latex_cells(one: Comparison, decimals: int) -> Iterator[str]:
    """Yield the LaTeX cells of one comparison."""
    decided = one.verdict in DECIDED_VERDICTS
    yield from (latex.latex_text(one.row), latex.latex_text(one.column), str(len(one.seeds)))
    width = "" if one.half_width is None else f" ± {one.half_width:.{decimals}f}"
    shown = "-" if one.difference is None else signed(one.difference, decimals) + width
    yield latex.bold(shown, decided)
    yield latex.latex_text(p_text(one.holm))
    yield latex.bold(" ".join(filter(None, (one.verdict, one.failure))), decided)


def comparison_csv(resolved: Resolved, base: str, comparisons: list[Comparison]) -> str:
    """Format comparisons as CSV, one line each."""
    return files.comma_separated(comparison_rows(resolved, base, comparisons), "{:.6g}")


def comparison_rows(
    resolved: Resolved, base: str, comparisons: Iterable[Comparison]
) -> list[dict[str, Any]]:
    """Return the values of each comparison by name, for CSV and data frames."""
    return [comparison_values(resolved.table.name, base, one) for one in comparisons]


def comparison_values(table: str, base: str, comparison: Comparison) -> dict[str, Any]:
    """Return the values of one comparison; None where there is none."""
    return {
        "table": table,
        "method": comparison.row,
        "against": base,
        "column": comparison.column,
        "domain": comparison.domain,
        "same_as": comparison.same_as,
        "seeds": " ".join(map(str, comparison.seeds)),
        "unpaired": comparison.unpaired,
        "baseline_mean": comparison.baseline,
        "method_mean": comparison.ours,
        "difference": comparison.difference,
        "difference_std": comparison.std,
        "won": None if comparison.difference is None else comparison.won,
        "effect": comparison.effect,
        "difference_half_width": comparison.half_width,
        "detectable": comparison.detectable,
        "seeds_needed": comparison.seeds_needed or None,
        "p_wilcoxon": comparison.wilcoxon.p,
        "p_t": comparison.t.p,
        "t_n": comparison.n,
        "t_ratio": comparison.ratio,
        "p_holm": comparison.holm,
        "control": comparison.control,
        "verdict": comparison.verdict,
        "why": comparison.why,
        "failure": comparison.failure,
    }
