"""The audit.

What deviates from the paper's protocol is listed with both values, what does not is not.
"""

from pathlib import Path
from typing import Any

import pytest
from made_records import ENVIRONMENT, made

from contrastbench.benchmarks.tables import selections
from contrastbench.benchmarks.tables.audit import report
from contrastbench.benchmarks.tables.catalogue import names
from contrastbench.benchmarks.tables.load import load
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import UserError

TABLE: dict[str, Any] = {
    "name": "small",
    "title": "t",
    "source": "s",
    "decimals": 1,
    "domain": "graph",
    "metric": "accuracy",
    "protocol": {
        "seeds": 2,
        "selection": "by chance",
        "recipe": {"epochs": 20, "folds": 10},
        "differs": ["in general"],
    },
    "columns": {
        "A": {"dataset": "MUTAG"},
        "B": {"dataset": "DD", "recipe": {"augmentation": "random3"}},
        "C": {},
    },
    "rows": [
        {"name": "quoted", "paper": {"A": [80.0, 1.0]}},
        {"name": "ours", "loss": "infonce", "paper": {"A": [85.0], "B": [75.0], "C": [1.0]}},
        {"name": "ours only", "loss": "adnce"},
    ],
}


def table(**change: Any) -> Table:
    return Table(**{**TABLE, **change})


def add(
    results: Path, column: str, seed: int, recipe: dict[str, Any] | None = None, **change: Any
) -> None:
    """The record of a seed of the row "ours", with changes."""
    work = table().experiment(table().rows[1], column)
    values = {**work.full_recipe.model_dump(mode="json"), **(recipe or {})}
    made(results, work, seed, recipe=values, **change)


def listed(results: Path, **change: Any) -> list[str]:
    """The deviations."""
    lines = report(table(**change), results).splitlines()
    return [line for line in lines if line.startswith("| ") and "---" not in line][1:]


def test_missing_and_few_seeds_are_listed(tmp_path: Path) -> None:
    assert listed(tmp_path) == ["| ours | A, B | seeds | 2 | missing |"]
    add(tmp_path, "A", 0)
    assert listed(tmp_path) == [
        "| ours | A | seeds | 2 | 1 |",
        "| ours | B | seeds | 2 | missing |",
    ]
    add(tmp_path, "A", 7)
    assert listed(tmp_path) == ["| ours | B | seeds | 2 | missing |"]
    add(tmp_path, "B", 0)
    add(tmp_path, "B", 1)
    add(tmp_path, "B", 2)
    assert listed(tmp_path) == []


def test_an_odd_name_breaks_no_table(tmp_path: Path) -> None:
    rows = [
        row.model_copy(update={"name": "o|u\nrs"}) if row.name == "ours" else row
        for row in table().rows
    ]
    assert listed(tmp_path, rows=rows) == ["| o&#124;u rs | A, B | seeds | 2 | missing |"]


def test_the_head_says_how_the_numbers_came_about(tmp_path: Path) -> None:
    add(tmp_path, "A", 0)
    text = report(table(), tmp_path)
    assert "- Published: mean over 2 runs; by chance.\n" in text
    assert "graph: the model after the last epoch.\n" in text
    assert (
        "- 4 published values: 2 quoted only, 2 can be run here, of which 1 are missing and 1 "
        "have too few seeds." in text
    )
    assert "\n- in general\n" in text
    open_ = next(
        line
        for line in text.splitlines()
        if line.startswith("Not said by the paper, ours in domain graph")
    )
    assert "batch_size 128" in open_
    assert not any(key in open_ for key in ("epochs", "folds", "augmentation", "limit"))


def test_values_that_differ_from_what_the_paper_says_are_listed(tmp_path: Path) -> None:
    protocol = {"recipe": {"epochs": 20, "batch_size": 256, "lr": 0.1}}
    assert "| ours | A, B | batch_size | 256 | 128 |" in listed(tmp_path, protocol=protocol)
    assert "| ours | A, B | lr | 0.1 | 0.01 |" in listed(tmp_path, protocol=protocol)
    assert not any("epochs" in line for line in listed(tmp_path, protocol=protocol))
    assert "| ours | A | epochs | 20 | 5 |" not in listed(tmp_path, protocol=protocol)
    assert "| ours | A, B | epochs | 20 | 5 |" in listed(
        tmp_path, protocol=protocol, recipe={"epochs": 5}
    )
    columns = {**TABLE["columns"], "A": {"dataset": "MUTAG", "recipe": {"epochs": 5}}}
    assert not any("epochs" in line for line in listed(tmp_path, columns=columns)), (
        "a column says its own protocol"
    )


def test_what_no_recipe_shows_is_listed(tmp_path: Path) -> None:
    columns = {**TABLE["columns"], "A": {"dataset": "MUTAG", "differs": ["another split"]}}
    rows = [{**TABLE["rows"][1], "differs": ["another network"]}]
    found = listed(tmp_path, columns=columns, rows=rows)
    assert "| ours | A | otherwise |  | another split |" in found
    assert "| ours | A, B | otherwise |  | another network |" in found


def test_records_of_another_recipe_are_told_and_not_counted(tmp_path: Path) -> None:
    for seed in (0, 1):
        add(tmp_path, "A", seed, recipe={"epochs": 3, "limit": 60})
    add(tmp_path, "A", 0, recipe={"lr": 0.5})
    assert set(listed(tmp_path)[:3]) == {  # records stand in the order of their keys
        "| ours | A, B | seeds | 2 | missing |",
        "| ours | A | records not counted (2) | epochs 20, limit none | epochs 3, limit 60 |",
        "| ours | A | records not counted (1) | lr 0.01 | lr 0.5 |",
    }


def test_circumstances_are_told(tmp_path: Path) -> None:
    add(tmp_path, "A", 0, details={"data": {"dropped": 3}})
    add(tmp_path, "A", 1, environment={**ENVIRONMENT, "commit": "c0ffee+changes", "device": "H100"})
    found = listed(tmp_path)
    assert "| ours | A | data |  | dropped 3 |" in found
    assert "| ours | A | code |  | uncommitted changes with seeds 1 |" in found
    assert "| ours | A | machines |  | H100, torch 2.15; a CPU, torch 2.15 |" in found


def test_a_protocol_with_an_unknown_key_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"unknown recipe key of domain graph in the protocol of small 'epoch'"
    ):
        report(table(protocol={"recipe": {"epoch": 5}}), tmp_path)


@pytest.mark.parametrize("name", names())
def test_every_table_can_be_audited(name: str, tmp_path: Path) -> None:
    text = report(load(name), tmp_path)
    assert ("nothing to audit" in text) or ("missing |" in text)
    assert load(name).source in text


def test_a_selection_is_told(tmp_path: Path) -> None:
    assert "Ours: parameters as printed in the paper, for all seeds; " in report(
        load("adnce-table10"), tmp_path
    )
    text = report(selections.resolve(load("adnce-table10"), "validation", tmp_path), tmp_path)
    assert "Ours: parameters validation: each outer fold of each seed has the best of its" in text
