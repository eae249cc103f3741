"""docs/scale.md, which docs/scale.py writes, and the operations that it keeps."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import listing
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.catalogue import names, operations
from contrastbench.losses import UserError

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"


def rows() -> list[list[str]]:
    """Return the rows of the page's table."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


def test_the_page_has_the_cells_of_every_table() -> None:
    """Its hours are an estimate of some day; what is run is that of the tables now."""
    page = PAGE.read_text()
    shown = {row[0]: int(row[1]) for row in rows()}
    quoted = page.rpartition("cells: ")[2].strip(" .\n").split(", ")
    for name in names():
        if "-table" not in name:
            continue  # our own comparison
        try:
            plan = make_plan(name, [], None, False, None, Path("nowhere"))
        except UserError:
            assert name in quoted
            continue
        own = {place.experiment.key: len(plan.seeds) for place in plan.places}
        assert shown.pop(name) == sum(own.values()), f"python docs/scale.py: {name} has changed"
    assert not shown


def test_the_kept_operations_are_those_of_the_page() -> None:
    hours = {row[0]: float(row[3].replace(",", "")) for row in rows()}
    kept = {name: asked / listing.RATE / 3600 for name, asked in operations().items()}
    assert kept == pytest.approx(hours, abs=0.005, rel=0.001)


def test_the_list_of_tables_says_what_each_takes(tmp_path: Path) -> None:
    lines = {line.split()[0]: line for line in listing.tables(tmp_path)}
    assert "12 values, 12 runnable,  0 done" in lines["adnce-table1"]
    assert f"{float(rows()[0][3]):.0f} GPU-h  Wu et al." in lines["adnce-table1"]
    assert "<1 GPU-h" in lines["adnce-table5"]
    assert "GPU-h" not in lines["dasl-table3"], "quoted only"
