"""What a comparison says by other choices of ours: effects in points, and less search.

A trial of a point with the first seed has a validation score and a test score, so the best of the
first k points by validation tells what a smaller budget would have found.
"""

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean

from contrastbench.benchmarks.comparison.effects import ALL_LOST, Effect, effect_of
from contrastbench.benchmarks.comparison.over_sets import Rows, Values, by_domain
from contrastbench.benchmarks.comparison.pairs import Comparison, SetName
from contrastbench.benchmarks.tables.entries import shown_value
from contrastbench.benchmarks.tables.resolved import Resolved, ResolvedCell
from contrastbench.benchmarks.tables.scores import validation_score
from contrastbench.benchmarks.tables.searches import Finalists

STEPS = (1, 4, 8, 16)  # points of a curve; the first is a loss's defaults
UNIT, BUDGET = "percent of the gain", "the budget"  # what a verdict may hang on
Places = Mapping[str, Sequence[Comparison]]  # by row
Curves = Mapping[tuple[str, str], Mapping[int, float]]  # by row and column: scores by points


def curves(resolved: Resolved) -> Curves:
    return {
        (line.name, column): curve(resolved, cell)
        for line in resolved.lines
        for column, cell in line.cells.items()
        if isinstance(cell.place.search, Finalists) and cell.ok
    }


def curve(resolved: Resolved, cell: ResolvedCell) -> dict[int, float]:
    """Return the test score of the best of so many points, chosen by validation with one seed."""
    search, data = cell.place.search, next(iter(cell.ok))
    assert isinstance(search, Finalists), "only such are asked"
    found = list[tuple[float, float]]()
    for trial in cell.trials:
        record = trial.finished_cells(resolved.results).get((data, search.seeds[0]))
        if record is None:
            break
        ok = record["status"] == "ok"
        score = shown_value(resolved, cell.column, record) if ok else -inf
        found.append((validation_score(trial, record), score))
    return {k: max(found[:k], key=lambda pair: pair[0])[1] for k in STEPS if k <= len(found)}


def others(
    known: Curves, base: str, by_row: Places, losses: Sequence[Effect], gains: Mapping[str, float]
) -> dict[str, Rows]:
    """Return the effects of losses by other choices, as far as records have them.

    Points stand in a unit in which as many of them are equal as are on average over sets.
    """
    if not gains:
        return {}
    kept = {row: [p for p in some if p.column in gains] for row, some in by_row.items()}
    sets = {(p.domain, p.column): gains[p.column] for some in kept.values() for p in some}
    percent = fmean(map(fmean, by_domain(sets).values())) / 100
    rows = [loss.row for loss in losses]
    in_points = {row: effect_of(row, kept[row], {}).by_set for row in rows}
    scaled = {row: {k: x / percent for k, x in some.items()} for row, some in in_points.items()}
    half = {row: effects_of_less(known, base, kept[row], gains, -2, -2) for row in rows}
    return {UNIT: scaled, **({BUDGET: half} if all(half.values()) else {})}


def effect_curve(
    known: Curves, base: str, mine: Sequence[Comparison], gains: Mapping[str, float]
) -> dict[int, float]:
    """Return a row's mean effect by the points tried, against the baseline's best of all."""
    kept = [place for place in mine if place.column in gains]
    steps = {k: effects_of_less(known, base, kept, gains, i, -1) for i, k in enumerate(STEPS)}
    shown = {k: by_domain(effects) for k, effects in steps.items() if effects}
    return {k: fmean(map(fmean, groups.values())) for k, groups in shown.items()}


def step_of(curve: Mapping[int, float], step: int) -> float | None:
    values = [*curve.values()]
    return values[step] if -len(values) <= step < len(values) else None


def effects_of_less(
    known: Curves,
    base: str,
    places: Sequence[Comparison],
    gains: Mapping[str, float],
    ours: int,
    theirs: int,
) -> Values:
    """Return effects of the best of less points; none where some trial is missing.

    Args:
        ours: the step of a row's curve; negative ones count from its end.
        theirs: that of the baseline's.
    """
    found: dict[SetName, list[float]] = {}
    for place in places:
        own = step_of(known.get((place.row, place.column), {}), ours)
        other = step_of(known.get((base, place.column), {}), theirs)
        if own is None or other in (None, -inf):
            return {}
        effect = ALL_LOST if own == -inf else 100 * (own - other) / gains[place.column]
        found.setdefault(place.data_set, []).append(effect)
    return {name: fmean(effects) for name, effects in found.items()}
