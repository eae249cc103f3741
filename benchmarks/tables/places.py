"""Make the places of a column: what is run there, and how its settings are chosen.

All that one row takes from another one is found here, once: which rows are one loss by algebra, so
that they share their cells and are counted once (`decoupled` is `infonce` where the positive is not
in the denominator), how many settings of its grid each row tries, and whose setting a control
takes. Sweeps with a grid keep their rows apart. Brings no torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contrastbench.benchmarks.tables import hypercube, points, searches, spaces
from contrastbench.benchmarks.tables.controls import AGAIN, CONTROLS
from contrastbench.benchmarks.tables.hypercube import size_of
from contrastbench.benchmarks.tables.points import BEST, Points
from contrastbench.benchmarks.tables.schema import Row, Setting, Tune, baseline
from contrastbench.benchmarks.tables.scores import NO_GRID, Place, Search, Setup
from contrastbench.domains.recipe import Recipe
from contrastbench.losses.reduction import reduced, simplest
from contrastbench.losses.spec import NONE, LossSpec

AGAIN_SEEDS = 2000  # is added to the seeds of another search of the baseline


def places_in(
    table: str, rows: Sequence[Row], setup: Setup, tune: Tune | None, equal: bool
) -> dict[str, Place]:
    """Return the places of a column by their rows.

    Args:
        tune: the budget of a search; None: there is none.
        equal: whether rows that are one loss by algebra are looked for.
    """
    plain = {row.name: plain_place(row, setup) for row in rows if row.runs_in(setup.column)}
    same = equal_rows(plain.values(), tune) if equal else {}
    budget, base_row = tune or Tune(), baseline(rows)
    sizes = (size_of(grid_in(row, setup)) for row in rows)
    count = budget.trials or min(filter(None, sizes), default=0)
    places = {
        name: replace(
            place, search=own_search(f"{table}: the grid of {name}", place, budget, count)
        )
        for name, place in plain.items()
        if name not in same
    }
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
    loss, recipe = LossSpec(row.loss or NONE, row.params), {**setup.recipe, **row.recipe}
    params = {**row.params, **row.params_by_column.get(setup.column, {})}
    setting = Setting(params, recipe=row.recipe_by_column.get(setup.column, {}))
    return Place(row, setup, loss, recipe, setting, searches.Fixed(setting))


def grid_in(row: Row, setup: Setup) -> dict[str, list[object]]:
    """Return a row's grid in a column."""
    return {**row.grid, **row.grid_by_column.get(setup.column, {})}


def own_search(name: str, place: Place, budget: Tune, count: int) -> Search:
    """Return the search of a row that takes no other row's setting.

    Args:
        name: that of its grid, for people.
        count: how many settings of a grid are tried.
    """
    if place.row.control:
        return searches.Fixed(place.setting)
    folds_choose = bare(place).nested
    if grid := grid_in(place.row, place.setup):
        trials: searches.Trials = searches.Grid(name, place.loss.params, grid, count)
    elif budget.search == "finalists" and place.row.loss != NONE and budget.trials != 1:
        return finalists_search(place, budget)
    elif budget.search == "points" and place.row.loss != NONE:
        return searches.Nested(Points(space_of(place, budget), place.setup.temperature), BEST)
    else:
        open_ = place.row.params_by_column.get(place.setup.column)
        return (
            searches.Fixed(place.setting, NO_GRID)
            if open_
            else searches.Fixed(Setting(place.loss.params))
        )
    return searches.Nested(trials) if folds_choose else searches.BestOf(place.setting, trials)


def finalists_search(place: Place, budget: Tune, again: bool = False) -> Search:
    """Return the search of a standing comparison; folds choose among its points."""
    recipe, seeds = bare(place), place.setup.trial_seeds
    count = budget.trials or spaces.POINTS
    trained = place.work.scored[0]  # two sets that score one training share its cells
    name = f"{trained.domain}/{trained.dataset}"
    space = spaces.Space(place.loss, recipe.lr, count, again, name)
    if recipe.nested:
        return searches.Nested(space)
    return searches.Finalists(place.setting, space, [seed + AGAIN_SEEDS * again for seed in seeds])


def bare(place: Place) -> Recipe:
    """Return the recipe of a place with the parameters that all its settings have."""
    return place.experiment(Setting(place.loss.params)).full_recipe


def space_of(place: Place, budget: Tune) -> points.PointSpace:
    """Return the space of a search at shared points."""
    recipe = bare(place)
    limit = simplest(place.loss, recipe.pairing_facts)
    return points.PointSpace(place.loss, limit, recipe.lr, budget.trials or points.BUDGET)


def beside_baseline(place: Place, base: Place, budget: Tune) -> Place:
    """Return a row that follows the baseline: at its setting, or in another search of its loss."""
    row = place.row
    if row.control == AGAIN and budget.search == "finalists":
        search = finalists_search(replace(place, loss=base.loss), budget, again=True)
        return replace(place, search=search, shift=AGAIN_SEEDS)
    if row.control == AGAIN:
        space = space_of(replace(place, loss=base.loss), budget)
        again = searches.Nested(Points(space, place.setup.temperature, again=True), BEST)
        return replace(place, search=again, shift=AGAIN_SEEDS)
    if row.beside:
        return replace(place, search=searches.Beside(place.setting, base, place.loss))
    if row.loss == NONE:
        return place
    params = CONTROLS[row.control].params if row.loss == base.row.loss else None
    return replace(place, search=searches.Control(place.setting, base, params))


def equal_rows(places: Iterable[Place], tune: Tune | None) -> dict[str, str]:
    """Return the rows that are the same as another one in a column, with that row's name.

    That is the row of the simplest loss, or else the first of them.
    """
    alike: dict[tuple[str, tuple[str, ...] | None], list[tuple[bool, str]]] = {}
    for place in places:
        if place.row.loss != NONE and not place.row.control:
            loss, given = algebra(place, tune)
            cells = place.experiment(Setting(loss.params, loss.name)).key, given
            alike.setdefault(cells, []).append((loss.name != place.loss.name, place.row.name))
    originals = {min(names, key=lambda named: named[0])[1]: names for names in alike.values()}
    return {
        name: original
        for original, names in originals.items()
        for _, name in names
        if name != original
    }


def algebra(place: Place, tune: Tune | None) -> tuple[LossSpec, tuple[str, ...] | None]:
    """Return the loss that a row is by algebra, and the parameters that its search leaves as given.

    A search whose every trial is of a simpler loss is the search of that loss; None: no search.
    """
    if tune and hypercube.searched_ranges(place.loss):
        space = space_of(place, tune)
        loss = space.loss if spaces.has_own(space.loss) else space.base
        return loss, tuple(sorted(loss.params))
    return reduced(place.loss, bare(place).pairing_facts), None
