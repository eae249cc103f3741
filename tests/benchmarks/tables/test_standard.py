"""The standing comparison's cells are those of its release, whatever else is added or changed."""

import json
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.load import NEWEST, load_table
from contrastbench.benchmarks.tables.schema import Setting
from contrastbench.benchmarks.tables.searches import Nested
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import registry
from contrastbench.losses.spec import LossSpec

RESULTS = Path(__file__).parents[3] / "results"
RELEASED = Path(__file__).parent / "released"  # a JSON file for each version, for ever
VERSIONS = sorted(path.stem for path in RELEASED.glob("*.json"))


def cells(name: str) -> dict[str, Any]:
    """All that can change the numbers of a suite, in few words."""
    table = load_table(name)
    work = {column: table.places[table.rows[0].name, column].work for column in table.columns}
    return {
        "seeds": table.seeds,
        "tune": table.tune.model_dump() if table.tune else None,
        "datasets": {
            column: [one.domain, one.full_recipe.protocol, one.full_recipe.model_dump(mode="json")]
            for column, one in work.items()
        },
        "points": points(table) if table.budget.search == "points" else None,
        "seeds_of": {column: [*table.seeds_of(column)] for column in table.columns},
        "losses": {
            row.name: LossSpec(row.loss or "none", row.params).complete.params for row in table.rows
        },
    }


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
    assert (table.budget.search, table.budget.trials) == ("points", 8)
    assert "infonce again" in {row.control for row in table.rows}
    seeds = {column.domain: len(table.seeds_of(name)) for name, column in table.columns.items()}
    assert seeds == {"image": 6, "tabular": 8, "graph": 12, "sentence": 4}


def test_its_quick_part_has_every_set_and_no_second_search() -> None:
    table = load_table("standard")
    assert table.quick
    assert table.quick.datasets == [*table.columns]
    assert table.quick.seeds == [*range(4)]
    assert {row.control for row in load_table("standard", quick=True).rows}.isdisjoint({AGAIN})
