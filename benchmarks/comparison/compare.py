"""Compare the rows of a table with a baseline: scores, effects, verdicts.

Sets are the unit of a verdict over data sets. Tests on single ones are of seeds or folds, and are
corrected by families, so that a loss that joins changes no other.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from contrastbench.benchmarks.comparison import Verdict, effects
from contrastbench.benchmarks.comparison.effects import Counted, Effect
from contrastbench.benchmarks.comparison.over_sets import Judged, judge, judge_control
from contrastbench.benchmarks.comparison.pairs import UNTESTED, Comparison, compare_cell
from contrastbench.benchmarks.comparison.statistics import ALPHA, holm
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.scored import scored_data
from contrastbench.benchmarks.tables.controls import CONTROLS, Must
from contrastbench.benchmarks.tables.resolved import Line, Resolved
from contrastbench.benchmarks.tables.table import Table
from contrastbench.errors import UserError, unknown


@dataclass(frozen=True)
class Verdicts:
    """A table's rows against a baseline: set by set, over sets, and who counts."""

    table: Table
    base: str
    places: Sequence[Comparison]  # each row in each column
    rows: Sequence[Judged]  # losses over sets, the best first; none where no set has an effect
    controls: Sequence[Judged]  # the same of rows that everybody can place
    counted: Counted

    @property
    def decides(self) -> bool:
        """Return whether there are sets enough for verdicts over them."""
        tested = any(row.over.verdict != Verdict.UNTESTED for row in (*self.rows, *self.controls))
        return tested and not self.counted.nothing_counts

    @property
    def wrong(self) -> list[Judged]:
        """Return the controls that did not come out as they must: nothing can be read then."""
        return [control for control in self.controls if not control.came_out]

    @property
    def domains(self) -> list[str]:
        return list(dict.fromkeys(d for row in (*self.rows, *self.controls) for d in row.by_domain))


def compare(resolved: Resolved, baseline: str | None = None) -> Verdicts:
    """Return all verdicts on a table's rows; without places where nothing can be compared."""
    base = baseline_row(resolved, baseline)
    places = compare_rows(resolved, base)
    rows, controls, counted = over_sets(resolved, base, places)
    return Verdicts(resolved.table, base.name, places, rows, controls, counted)


def baseline_row(resolved: Resolved, name: str | None = None) -> Line:
    """Return the row of that name, or the first with InfoNCE, or the first that is no control."""
    lines = {line.name: line for line in resolved.lines if line.cells}
    if not lines:
        raise UserError(f"table {resolved.table.name} has only quoted rows: choose another table")
    if name is not None and name not in lines:
        raise unknown(f"row of {resolved.table.name} that can be run", name, lines)
    if name is not None:
        return lines[name]
    contestants = [line for line in lines.values() if not line.control] or list(lines.values())
    return next((line for line in contestants if line.row.loss == "infonce"), contestants[0])


def compare_rows(resolved: Resolved, base: Line) -> list[Comparison]:
    """Every runnable row but the baseline, in every column where both have a shared seed.

    Also where a row has failed, or the baseline has. Rows that `--loss` names come first. Losses
    that joined, the other losses, and the controls are families of tests.
    """
    asked, sets = resolved.table.asked, set_names(base)
    comparisons = [
        replace(compare_cell(resolved, base, line, column), dataset=sets[column])
        for line in sorted(resolved.lines, key=lambda line: line.name not in asked)
        for column in base.cells
        if line is not base and column in line.cells
    ]
    comparisons = [place for place in comparisons if place.seeds or place.failure or place.why]
    to_come = places_to_come(resolved, base, comparisons)
    waiting = {row for row, _ in to_come}
    families: dict[str, list[Comparison]] = {"joined": [], "listed": [], "controls": []}
    for place in comparisons:
        # the family of tests that it is corrected in: a join changes no other one
        family = "controls" if place.control else "joined" if place.joined else "listed"
        families[family].append(replace(place, waiting=place.row in waiting))
    if resolved.table.is_suite_of_sets:
        return [place for family in families.values() for place in family]
    more = {"listed": len(to_come)}
    return [x for name, family in families.items() for x in decide(family, more.get(name, 0))]


def set_names(base: Line) -> dict[str, str]:
    """Return the data set of each column: columns that score equal data are one set."""
    names: dict[tuple[str, str], str] = {}
    found = {}
    for column, cell in base.cells.items():
        name, record = cell.work.dataset, next(iter(cell.records.values()), None)
        data = scored_data(record) if record else name
        found[column] = names.setdefault((cell.work.domain, data), name)
    return found


def places_to_come(
    resolved: Resolved, base: Line, comparisons: Sequence[Comparison]
) -> set[tuple[str, str]]:
    """Return the rows and columns that a table lists and that nothing is known of yet.

    They are corrected for from the beginning, so that no verdict is lost as results arrive. Copies
    and columns without the baseline's results are not among them.
    """
    known = {(c.row, c.column) for c in comparisons if c.t.p is not None or c.is_final}
    lines = (line for line in resolved.lines if is_listed(resolved.table, line, base))
    return {
        (line.name, column)
        for line in lines
        for column, cell in line.cells.items()
        if not cell.same_as and column in base.cells and base.cells[column].ok
    } - known


def is_listed(table: Table, line: Line, base: Line) -> bool:
    """Return whether a row is one of the losses that a table compares with the baseline."""
    return not (line is base or line.control or line.name in table.joined)


def decide(family: Sequence[Comparison], to_come: int = 0) -> list[Comparison]:
    """Return the comparisons of a family with verdicts by Holm's correction, with those to come.

    A row that is another one by algebra is tested once.
    """
    there = {(place.row, place.column) for place in family}
    family = [
        replace(place, t=UNTESTED, why=place.why or f"tested as {place.same_as}")
        if (place.same_as, place.column) in there
        else place
        for place in family
    ]
    tests = max(1, sum(place.t.p is not None for place in family) + to_come)
    family = [replace(place, family=tests) for place in family]
    return [*map(with_verdict, family, holm([place.t.p for place in family], to_come))]


def with_verdict(place: Comparison, adjusted: float | None) -> Comparison:
    """Return the verdict better, worse or undecided; too few pairs stay untested.

    A row that diverged with some seeds is not better by those that are left, nor worse than a
    baseline that did.
    """
    if adjusted is None or place.difference is None:
        return replace(place, why=place.why or place.t.why)  # failed, or untested
    better = place.difference > 0
    verdict = Verdict.BETTER if better else Verdict.WORSE
    if adjusted > ALPHA or (place.lost if better else place.base_lost):  # by those that are left
        verdict = Verdict.UNDECIDED
    return replace(place, holm=adjusted, verdict=verdict)


def over_sets(
    resolved: Resolved, base: Line, places: Sequence[Comparison]
) -> tuple[list[Judged], list[Judged], Counted]:
    """Return losses and controls over data sets, and which sets and rows count.

    Against a baseline that is itself untrained, or a control, nothing is known of how rows must
    come out, and no training gains anything: effects are points, and each row is a contestant.
    """
    lines = () if base.control or base.is_untrained else resolved.lines
    bare, musts = {line.name for line in lines if line.is_untrained}, musts_of(lines)
    gains, left_out = effects.gains_of(place for place in places if place.row in bare)
    by_row = grouped((place.row, place) for place in places)
    both = [
        [effects.effect_of(row, mine, by) for by in (gains, {})] for row, mine in by_row.items()
    ]
    there = [one for one, _ in both if one.by_set and not (one.same and one.waiting)]
    losses = alike([one for one in there if one.row not in musts], by_row)
    counted = count(resolved, base, places, losses, musts, gains, left_out)
    known = effects.curves(resolved)
    rows = judge(losses, counted, effects.others(known, base.name, by_row, losses, gains))
    rows = [
        replace(row, curve=effects.effect_curve(known, base.name, by_row[row.effect.row], gains))
        for row in rows
    ]
    controls = [(c, c if musts[c.row] == "equal" else whole) for c, whole in both if c.row in musts]
    judged = [
        judge_control(c, asked, musts[c.row], counted) for c, asked in controls if asked.by_set
    ]
    return [] if counted.nothing_counts else rows, judged, counted


def musts_of(lines: Iterable[Line]) -> dict[str, Must]:
    """Return how controls, and other rows without a training, must come out."""
    named = {line.name: line.control or "untrained" * line.is_untrained for line in lines}
    return {row: CONTROLS[control].must for row, control in named.items() if control}


def alike(losses: Sequence[Effect], by_row: Mapping[str, Sequence[Comparison]]) -> list[Effect]:
    """Return losses that are the same runs on each set as one."""
    found = grouped((runs_of(loss, by_row[loss.row]), loss) for loss in losses)
    return [replace(some[0], also=[one.row for one in some[1:]]) for some in found.values()]


def runs_of(loss: Effect, mine: Sequence[Comparison]) -> Hashable:
    """Return what losses have in common that are the same runs on each set."""
    if loss.waiting:
        return loss.row
    if loss.same:
        return loss.joined, ""
    return loss.joined, frozenset((c.column, c.runs or c.same_as or loss.row) for c in mine)


def count(
    resolved: Resolved,
    base: Line,
    places: Sequence[Comparison],
    losses: Sequence[Effect],
    musts: Mapping[str, str],
    gains: Mapping[str, float],
    left_out: Sequence[str],
) -> Counted:
    lines = [line for line in resolved.lines if line.name not in musts]
    known = {name for one in losses for name in (one.row, *one.also)}
    own = {line.name: [c for c in line.cells.values() if not c.same_as] for line in lines}
    listed = [line.name for line in lines if is_listed(resolved.table, line, base)]
    to_come = [name for name in listed if own[name] and name not in known]
    cells = {line.name: own[line.name] or [*line.cells.values()] for line in lines}
    idle = [name for name, some in cells.items() if some and not any(c.has_run for c in some)]
    compared = {place.column for place in places}
    others = {cell.column for cell in resolved.cells if cell.has_run} - compared
    columns = [name for name in resolved.table.columns if name in others]
    return Counted(gains, left_out, len(to_come), idle, columns)
