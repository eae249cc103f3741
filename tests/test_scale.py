"""The pages that say what the papers' tables take, and how much of them is done."""

from collections import Counter
from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.published_places import printed_values
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.losses import UserError

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scale.md"
PAPERS = {"adnce": "ADNCE", "attentionnce": "AttentionNCE", "dasl": "DASL", "renyicl": "RényiCL"}


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
        assert cells == sum(own.values()), f"python tests/tools/scale.py: {name} has changed"


def test_tables_that_are_quoted_only_have_nothing_to_run() -> None:
    quoted = PAGE.read_text().rpartition("cells: ")[2].strip(" .\n").split(", ")
    assert quoted
    for name in quoted:
        with pytest.raises(UserError):
            make_plan(name, [], None, False, None, Path("nowhere"))


def test_the_results_say_how_much_of_each_paper_is_done() -> None:
    found: dict[tuple[str, str], Counter[str]] = {}
    for name in table_names():
        table = load_table(name)
        for _, column, cell in printed_values(resolve(table, None, ROOT / "results")):
            place = PAPERS[name.partition("-")[0]], table.domain_of(column)
            found.setdefault(place, Counter()).update(
                printed=1, runnable=cell is not None, done=bool(cell and cell.ok)
            )
    page = (ROOT / "results" / "README.md").read_text()
    for (paper, domain), of in found.items():
        assert f"| {paper} | {domain} | {of['printed']} | {of['runnable']} | {of['done']} |" in page
    runnable, done = (sum(of[key] for of in found.values()) for key in ("runnable", "done"))
    assert f"{runnable} can be run here, and {done} are done" in page
    assert f"{done} of {runnable} runnable values" in (ROOT / "README.md").read_text()
