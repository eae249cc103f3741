"""The page docs/scale.md, which `python tests/scale.py` writes."""

from pathlib import Path

from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.catalogue import names
from contrastbench.losses import UserError

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


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
        assert shown.pop(name) == sum(own.values()), f"python tests/scale.py: {name} has changed"
    assert not shown
