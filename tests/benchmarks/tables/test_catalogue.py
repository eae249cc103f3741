"""Which tables there are: ours, packages', users' own, and the suite, which never changes."""

import json
import shutil
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.cli.table_list import listed, table_lines
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.audit import coverage
from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.load import NEWEST, load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.searches import Finalists
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import UserError, registry
from contrastbench.losses.spec import LossSpec
from made_records import made

OURS = Path(catalogue.__file__).parent


def test_tables_are_sorted_by_paper_and_number() -> None:
    names = catalogue.table_names()
    assert names.index("adnce-table5") < names.index("adnce-table10") < names.index("dasl-table5")
    assert set(names) == {path.stem for path in OURS.glob("*.yaml")}


def test_the_list_says_what_is_published_what_runs_and_what_is_done(tmp_path: Path) -> None:
    table = load_table("adnce-table5")
    work = table.places["ADNCE", "NCI1"].work
    for seed, seconds in enumerate((7200.0, 3600.0)):
        made(tmp_path, work, seed, metrics={"accuracy": 80.0}, seconds=seconds)
    line = next(line for line in table_lines(tmp_path) if line.startswith("adnce-table5 "))
    assert "36 values, 20 runnable,  1 done in 3.0 h " in line
    assert line.endswith(table.source)


@pytest.mark.parametrize("name", catalogue.table_names())
def test_the_list_counts_as_a_read_table_does(name: str, tmp_path: Path) -> None:
    table, about = load_table(name), listed(name)
    assert about.source == table.source
    values, runnable, _ = coverage(resolve(table, None, tmp_path)) if table.quotes else (0, 0, 0)
    assert (about.values, about.runnable) == (values, runnable)


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    assert catalogue.find_table(str(OURS / "adnce-table5.yaml")) == OURS / "adnce-table5.yaml"
    shutil.copy(OURS / "adnce-table5.yaml", tmp_path)
    with pytest.raises(UserError, match=r"two tables are named adnce-table5: .*rename your file"):
        catalogue.find_table(str(tmp_path / "adnce-table5.yaml"))


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
    about = [[one.params, one.recipe] for one in place.search.space.settings]
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
