"""The standing comparison's cells are those of its release, whatever else is added or changed."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.tables.load import NEWEST, load
from contrastbench.losses import registry
from contrastbench.losses.spec import LossSpec

RELEASED = Path(__file__).parent / "released"  # a JSON file for each version, for ever
VERSIONS = sorted(path.stem for path in RELEASED.glob("*.json"))


def cells(name: str) -> dict[str, Any]:
    """All that can change the numbers of a suite, in few words."""
    table = load(name)
    work = {column: table.experiment(table.rows[0], column) for column in table.columns}
    return {
        "seeds": table.seeds,
        "tune": table.tune.model_dump() if table.tune else None,
        "datasets": {
            column: [one.domain, one.full_recipe.protocol, one.full_recipe.model_dump(mode="json")]
            for column, one in work.items()
        },
        "losses": {
            row.name: [
                LossSpec(row.loss or "none", {**row.params, **setting}).complete.params
                for setting in row.settings or [{}]
            ]
            for row in table.rows
        },
    }


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
    rows = [row.name for row in load(name).rows]
    added = EntryPoint("added", "losses.infonce:InfoNCE", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: [added])
    assert "added" in registry.losses()
    assert [row.name for row in load(name).rows] == rows


def test_the_newest_is_known_by_the_short_name() -> None:
    assert NEWEST["standard"] == VERSIONS[-1]
    assert load("standard").name == VERSIONS[-1]
