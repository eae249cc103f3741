"""The page docs/scale.md, which `python tests/scale.py` writes."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.losses import UserError

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


def rows() -> list[list[str]]:
    """Return the rows of the page's table."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_the_page_has_the_cells_of_its_tables() -> None:
    """Its hours are an estimate of some day; what is run is that of the tables now.

    A table that is newer than the page needs no line there.
    """
    shown = {row[0]: int(row[1]) for row in rows()}
    assert set(shown) <= set(table_names())
    for name, cells in shown.items():
        plan = make_plan(name, [], None, False, None, Path("nowhere"))
        own = {place.work.key: len(plan.seeds) for place in plan.places}
        assert cells == sum(own.values()), f"python tests/scale.py: {name} has changed"


def test_tables_that_are_quoted_only_have_nothing_to_run() -> None:
    quoted = PAGE.read_text().rpartition("cells: ")[2].strip(" .\n").split(", ")
    assert quoted
    for name in quoted:
        with pytest.raises(UserError):
            make_plan(name, [], None, False, None, Path("nowhere"))
