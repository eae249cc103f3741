"""The standing comparison's cells are those of its release, whatever else is added or changed."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.tables import staged
from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.load import NEWEST, load_table
from contrastbench.benchmarks.tables.places import space_of
from contrastbench.benchmarks.tables.schema import Column, Row, Setting
from contrastbench.benchmarks.tables.searches import BestOf, Hypercube, Nested
from contrastbench.benchmarks.tables.table import Table
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import registry
from contrastbench.losses.spec import LossSpec
from suites import candidates

RESULTS = Path(__file__).parents[3] / "results"
RELEASED = Path(__file__).parent / "released"  # a JSON file for each version, for ever
VERSIONS = sorted(path.stem for path in RELEASED.glob("*.json"))


def cells(name: str) -> dict[str, Any]:
    """All that can change the numbers of a suite, in few words."""
    table = load_table(name)
    work = {column: table.places[table.rows[0].name, column].work for column in table.columns}
    return {
        "seeds": table.seeds,
        "test": table.test,
        "tune": table.tune.model_dump() if table.tune else None,
        "trial_seeds": trial_seeds(table),
        "datasets": {
            column: [one.domain, one.full_recipe.protocol, one.full_recipe.model_dump(mode="json")]
            for column, one in work.items()
        },
        "trials": trials(table) if table.budget.search == "staged" else None,
        "points": points(table) if table.budget.search == "points" else None,
        "seeds_of": {column: [*table.seeds_of(column)] for column in table.columns},
        "losses": {
            row.name: [
                LossSpec(row.loss or "none", one).complete.params for one in tried(table, row)
            ]
            for row in table.rows
        },
    }


def trial_seeds(table: Table) -> dict[str, list[int]]:
    """The seeds of trials of columns that have their own."""
    return {name: one.trial_seeds for name, one in table.columns.items() if one.trial_seeds}


def tried(table: Table, row: Row) -> list[dict[str, Any]]:
    """The settings of a row's hypercube, or the one that the file gives."""
    column = next(one for one in table.columns if (row.name, one) in table.places)
    search = table.places[row.name, column].search
    trials = search.trials if isinstance(search, Nested | BestOf) else None
    found = trials.settings if isinstance(trials, Hypercube) else [Setting(row.params)]
    return [one.params for one in found]


def trials(table: Table) -> dict[str, dict[str, str]]:
    """Digests of the settings that each loss tries, with the first temperature as the best."""
    found: dict[str, dict[str, str]] = {}
    for row in (row for row in table.rows if not row.control):
        for column in table.columns:
            space = space_of(table.places[row.name, column], table.budget)
            tried = staged.first_stage(space)
            for stage in (staged.second_stage, staged.third_stage):
                tried = [*tried, *stage(space, tried, 0)]
            tried += staged.of_folds(space)
            found.setdefault(row.name, {})[column] = digest(tried)
    return found


def points(table: Table) -> dict[str, dict[str, str]]:
    """Digests of the settings that each loss has at the shared points."""
    found: dict[str, dict[str, str]] = {}
    for (row, column), place in table.places.items():
        if isinstance(place.search, Nested):
            found.setdefault(row, {})[column] = digest(place.search.trials.settings)
    return found


def digest(tried: Sequence[Setting]) -> str:
    """A short hash of settings in their order."""
    about = [[one.loss, one.params, one.recipe, *filter(None, [one.point])] for one in tried]
    text = json.dumps(about, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:12]


def holds(released: Any, now: Any) -> bool:
    """Whether all that was released is as it was; what is newer has its default.

    >>> holds({"a": 1}, {"a": 1, "b": 2}), holds({"a": 1}, {"a": 2}), holds([1], [1, 2])
    (True, False, False)
    """
    if isinstance(released, dict):
        return all(key in now and holds(value, now[key]) for key, value in released.items())
    if isinstance(released, list):
        return len(released) == len(now) and all(map(holds, released, now))
    return bool(released == now)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_released_suite_never_changes(name: str) -> None:
    released = json.loads((RELEASED / f"{name}.json").read_text())
    now = json.loads(json.dumps(cells(name)))
    for part, values in released.items():
        assert holds(values, now[part]), part


@pytest.mark.parametrize("name", VERSIONS)
def test_a_package_adds_no_loss_to_a_suite(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row.name for row in load_table(name).rows]
    added = EntryPoint("added", "losses.infonce:InfoNCE", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [added])
    assert "added" in registry.losses()
    assert [row.name for row in load_table(name).rows] == rows


def test_the_newest_is_known_by_the_short_name() -> None:
    assert NEWEST["standard"] == VERSIONS[-1]
    assert load_table("standard").name == VERSIONS[-1]


def test_it_has_eight_points_that_all_losses_share_and_a_second_search_of_infonce() -> None:
    table = load_table("standard")
    assert (table.budget.search, table.budget.trials, table.test) == ("points", 8, "seeds")
    assert "infonce again" in {row.control for row in table.rows}
    seeds = {column.domain: len(table.seeds_of(name)) for name, column in table.columns.items()}
    assert seeds == {"image": 6, "tabular": 8, "graph": 12, "sentence": 4}


def test_losses_that_are_copies_are_aliased() -> None:
    table = load_table("standard-2")
    same = {table.places["supcon", column].same_as for column in table.columns}
    assert same == {"infonce"}


CANDIDATES = sorted((RESULTS / "candidates").glob("*.yaml"))


def columns_of(path: Path) -> Iterable[tuple[str, Column]]:
    return load_table(str(path)).columns.items()


def recipe_of(column: Column) -> str:
    """A data set may be a candidate several times, with other features."""
    return make_recipe(column.domain or "", column.recipe).model_dump_json()


SINCE_THE_RULE = ("standard-2", "standard-3")


@pytest.mark.parametrize("suite", SINCE_THE_RULE)
def test_its_sets_are_admitted_by_their_records(suite: str) -> None:
    table, seeds = load_table(suite), parse_seeds(ADMISSION_SEEDS)
    used, admitted = {(name, recipe_of(one)) for name, one in table.columns.items()}, list[str]()
    for path in CANDIDATES:
        some = {name: one for name, one in columns_of(path) if (name, recipe_of(one)) in used}
        if not some:
            continue
        chosen = load_table(str(path)).model_copy(update={"columns": some})
        for one in candidates(chosen, seeds, RESULTS):
            assert one.judged[0] == "admitted", one
            admitted.append(one.name)
    assert sorted(admitted) == sorted(table.columns)


@pytest.mark.parametrize(("suite", "seeds"), [("standard-2", 3), ("standard-3", 4)])
def test_its_quick_part_has_every_set_and_no_second_search(suite: str, seeds: int) -> None:
    table = load_table(suite)
    assert table.quick
    assert table.quick.datasets == [*table.columns]
    assert table.quick.seeds == [*range(seeds)]
    assert {row.control for row in load_table(suite, quick=True).rows}.isdisjoint({AGAIN})


def test_trials_on_tables_have_two_seeds_and_on_sentences_three() -> None:
    two, three = [1000, 1001], [1000, 1001, 1002]
    table = load_table("standard-2")
    assert trial_seeds(table) == {"letter": two, "nursery": two, "captions": three, "sts": three}
