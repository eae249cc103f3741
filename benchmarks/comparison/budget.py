"""What a comparison says by other choices of ours: effects in points, and less search.

A trial of a point with the first seed has a validation score and a test score, so the best of the
first k points by validation tells what a smaller budget would have found.
"""

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean

from contrastbench.benchmarks.comparison.effects import SHARES, Effect, effect_of
from contrastbench.benchmarks.comparison.over_sets import Other, Values, by_domain, means
from contrastbench.benchmarks.comparison.places import Comparison, SetName
from contrastbench.benchmarks.records.nested import validation_score
from contrastbench.benchmarks.tables.entries import shown_value
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.searches import Finalists

STEPS = (1, 4, 8, 16)  # points of a curve; the first is a loss's defaults
HALF = 8
UNIT, BUDGET = "percent of the gain", "the budget"  # what a verdict may hang on
Places = Mapping[str, Sequence[Comparison]]  # by row


def others(
    resolved: Resolved,
    base: Line,
    by_row: Places,
    losses: Sequence[Effect],
    gains: Mapping[str, float],
) -> dict[str, Other]:
    """Return the effects of losses by other choices, as far as records have them."""
    if not gains:
        return {}
    sets = {
        (place.domain, place.column): gains[place.column]
        for some in by_row.values()
        for place in some
        if place.column in gains
    }
    margin = SHARES.margin / 100 * fmean(map(fmean, by_domain(sets).values()))
    in_points = {
        loss.row: means(effect_of(loss.row, [p for p in by_row[loss.row] if p.column in gains], {}))
        for loss in losses
    }
    half = {
        loss.row: effects_of_less(resolved, base, by_row[loss.row], gains, HALF, HALF)
        for loss in losses
    }
    found = {UNIT: Other(in_points, margin)}
    if all(half.values()):
        found[BUDGET] = Other(half, SHARES.margin)
    return found


def effect_curve(
    resolved: Resolved, base: Line, mine: Sequence[Comparison], gains: Mapping[str, float]
) -> dict[int, float]:
    """Return a row's mean effect by the points tried, against the baseline's best of all."""
    steps = {k: effects_of_less(resolved, base, mine, gains, k, STEPS[-1]) for k in STEPS}
    shown = {k: by_domain(effects) for k, effects in steps.items() if effects}
    return {k: fmean(map(fmean, groups.values())) for k, groups in shown.items()}


def effects_of_less(
    resolved: Resolved,
    base: Line,
    mine: Sequence[Comparison],
    gains: Mapping[str, float],
    ours: int,
    theirs: int,
) -> Values:
    """Return effects of the best of so many points; none where some trial is missing."""
    lines = {line.name: line for line in resolved.lines}
    found: dict[SetName, list[float]] = {}
    for place in mine:
        if place.column not in gains:
            continue
        own = curve(resolved, lines[place.row].cells[place.column]).get(ours)
        other = curve(resolved, base.cells[place.column]).get(theirs)
        if own is None or other is None:
            return {}
        effect = 100 * (own - other) / gains[place.column]
        found.setdefault(place.data_set, []).append(effect)
    return {name: fmean(effects) for name, effects in found.items()}


def curve(resolved: Resolved, cell: ResolvedCell) -> dict[int, float]:
    """Return the test score of the best of so many points, chosen by validation with one seed."""
    search = cell.place.search
    if not isinstance(search, Finalists) or not cell.ok:
        return {}
    data, found = next(iter(cell.ok)), list[tuple[float, float]]()
    for setting in search.settings:
        trial = cell.place.experiment(setting)
        record = trial.finished_cells(resolved.results).get((data, search.seeds[0]))
        if record is None:
            break
        ok = record["status"] == "ok"
        score = shown_value(resolved, cell.column, record) if ok else -inf
        found.append((validation_score(trial, record), score))
    return {k: max(found[:k], key=lambda pair: pair[0])[1] for k in STEPS if k <= len(found)}
