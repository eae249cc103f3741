"""Make the places of a column: what is run there, and how its settings are chosen.

All that one row takes from another one is found here, once: which rows are one loss by algebra, so
that they share their cells and are counted once (`decoupled` is `infonce` where the positive is not
in the denominator), how many settings of its grid each row tries, and whose setting a control
takes. Sweeps with a grid keep their rows apart. Brings no torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.tables import searches
from contrastbench.benchmarks.tables.controls import AGAIN, CONTROLS
from contrastbench.benchmarks.tables.schema import Row, Setting, Tune, baseline
from contrastbench.benchmarks.tables.scores import NO_GRID, Place, Search, Setup
from contrastbench.domains.recipe import Recipe, laid_over
from contrastbench.losses.spec import NONE, LossSpec, reduced

AGAIN_SEEDS = 2000  # is added to the seeds of another search of the baseline


def places_in(
    table: str, rows: Sequence[Row], setup: Setup, budget: Tune, searched: bool, equal: bool
) -> dict[str, Place]:
    """Return the places of a column by their rows.

    Losses without a grid may be `searched`; `equal` rows, which are one loss by algebra, be found.
    """
    plain = {row.name: plain_place(row, setup) for row in rows if row.runs_in(setup.column)}
    same = equal_rows(plain.values(), searched) if equal else {}
    sizes = (searches.size_of(grid_in(row, setup)) for row in rows)
    count = budget.trials or min(filter(None, sizes), default=0)
    grids = {
        name: searches.Grid(f"{table}: the grid of {name}", place.loss.params, grid, count)
        for name, place in plain.items()
        if (grid := grid_in(place.row, setup))
    }
    places = {
        name: replace(place, search=own_search(place, budget, searched, grids.get(name)))
        for name, place in plain.items()
        if name not in same
    }
    base_row = baseline(rows)
    base = places.get(same.get(base_row.name, base_row.name)) if base_row else None
    if base and base_row:
        base = replace(base, row=base_row)
        places |= {
            name: beside_baseline(place, base, budget)
            for name, place in places.items()
            if place.row.control or place.row.beside
        }
    copies = {
        name: replace(places[original], row=plain[name].row, same_as=original)
        for name, original in same.items()
    }
    return {name: copies.get(name) or places[name] for name in plain}


def plain_place(row: Row, setup: Setup) -> Place:
    """Return the place of a row that chooses nothing."""
    loss, recipe = LossSpec(row.loss or NONE, row.params), laid_over(setup.recipe, row.recipe)
    params = {**row.params, **row.params_by_column.get(setup.column, {})}
    setting = Setting(params, recipe=row.recipe_by_column.get(setup.column, {}))
    return Place(row, setup, loss, recipe, setting, searches.Fixed(setting))


def grid_in(row: Row, setup: Setup) -> dict[str, list[object]]:
    return {**row.grid, **row.grid_by_column.get(setup.column, {})}


def own_search(place: Place, budget: Tune, searched: bool, grid: searches.Grid | None) -> Search:
    """Return the search of a row that takes no other row's setting."""
    if place.row.control:
        return searches.Fixed(place.setting)
    if grid:
        folds_choose = bare(place).nested
        return searches.Nested(grid) if folds_choose else searches.BestOf(place.setting, grid)
    if searched and place.row.loss != NONE and budget.trials != 1:
        return points_search(place, budget)
    if place.row.params_by_column.get(place.setup.column):
        return searches.Fixed(place.setting, NO_GRID)
    return searches.Fixed(Setting(place.loss.params))


def points_search(place: Place, budget: Tune, again: bool = False) -> Search:
    """Return the search among points of a loss's ranges: by finalists, or by folds where they turn.

    Another one, `again`, is by the next points and with other seeds.
    """
    recipe, seeds = bare(place), place.setup.trial_seeds
    trained = place.work.scored[0]  # two sets that score one training share its cells
    name = f"{trained.domain}/{trained.dataset}"
    space = searches.Space(place.loss, recipe.lr, budget.trials or searches.POINTS, again, name)
    if recipe.nested:
        return searches.Nested(space)
    return searches.Finalists(place.setting, space, [seed + AGAIN_SEEDS * again for seed in seeds])


def bare(place: Place) -> Recipe:
    """Return the recipe of a place with the parameters that all its settings have."""
    return place.experiment(Setting(place.loss.params)).full_recipe


def beside_baseline(place: Place, base: Place, budget: Tune) -> Place:
    """Return a row that follows the baseline: at its setting, or in another search of its loss."""
    row = place.row
    if row.beside:
        return replace(place, search=searches.Beside(place.setting, base, place.loss))
    if row.loss == NONE:
        return place
    if row.loss != base.row.loss:
        return replace(place, search=searches.Control(place.setting, base, None))
    place = replace(place, loss=base.loss)
    if row.control == AGAIN:
        return replace(place, search=points_search(place, budget, again=True), shift=AGAIN_SEEDS)
    search = searches.Control(place.setting, base, CONTROLS[row.control].params)
    return replace(place, search=search)


def equal_rows(places: Iterable[Place], searched: bool) -> dict[str, str]:
    """Return the rows that are the same as another one in a column, with that row's name.

    That is the row of the simplest loss, or else the first of them. A search whose every trial is
    of a simpler loss is the search of that loss.
    """
    alike: list[tuple[tuple[str, ...], tuple[bool, str]]] = []
    for place in places:
        if place.row.loss != NONE and not place.row.control:
            free = searches.searched_ranges(place.loss) if searched else ()
            loss = reduced(place.loss, bare(place).pairing_facts, free)
            cells = replace(place, loss=loss).experiment(Setting(loss.params)).key
            named = loss.name != place.loss.name, place.row.name
            alike.append(((cells, *sorted(loss.params)), named))
    found: dict[str, str] = {}
    for names in grouped(alike).values():
        original = min(names, key=lambda named: named[0])[1]
        found |= {name: original for _, name in names if name != original}
    return found
