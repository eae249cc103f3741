"""The standing comparison's cells are those that are pinned, whatever else is added or changed."""

import json
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.load import NEWEST, load_table
from contrastbench.benchmarks.tables.searches import Finalists
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import registry
from contrastbench.losses.spec import LossSpec

PINNED = Path(__file__).parent / "released"  # a JSON file for each version, for ever
VERSIONS = sorted(path.stem for path in PINNED.glob("*.json"))


def cells(table: Table) -> dict[str, Any]:
    """All that can change the numbers of a suite, in few words."""
    work = {column: table.places[table.rows[0].name, column].work for column in table.columns}
    return {
        "tune": table.budget.model_dump(),
        "seeds": {column: [*table.seeds_of(column)] for column in table.columns},
        "datasets": {
            column: [one.domain, one.full_recipe.protocol, one.full_recipe.model_dump(mode="json")]
            for column, one in work.items()
        },
        "losses": {
            row.name: [
                LossSpec(row.loss or "none", row.params).complete.params,
                {column: points(table, row.name, column) for column in table.columns},
            ]
            for row in table.rows
        },
    }


def points(table: Table, row: str, column: str) -> str:
    """A short hash of what a row tries in a column; nothing where it searches nothing."""
    place = table.places.get((row, column))
    if not place or not isinstance(place.search, Finalists):
        return ""
    about = [[one.params, one.recipe] for one in place.search.settings]
    return sha256(json.dumps([about, place.search.seeds], sort_keys=True).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_suite_never_changes(name: str) -> None:
    """It may list more losses as they become whole; one that is listed has its pinned points."""
    pinned = json.loads((PINNED / f"{name}.json").read_text())
    now = json.loads(json.dumps(cells(load_table(name))))
    listed, known = now.pop("losses"), pinned.pop("losses")
    assert now == pinned
    for loss, about in listed.items():
        assert about == known.get(loss), loss


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


def test_its_quick_part_has_every_set_and_no_second_search() -> None:
    table = load_table("standard")
    assert table.quick
    assert table.quick.datasets == [*table.columns]
    assert AGAIN in {row.control for row in table.rows}
    assert {row.control for row in load_table("standard", quick=True).rows}.isdisjoint({AGAIN})
