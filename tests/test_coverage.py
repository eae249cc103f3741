"""The pages that say how much of the papers' tables is done."""

from collections import Counter
from pathlib import Path

from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.published_places import printed_values
from contrastbench.benchmarks.tables.resolved import resolve

ROOT = Path(__file__).parents[1]
PAPERS = {"adnce": "ADNCE", "attentionnce": "AttentionNCE", "dasl": "DASL", "renyicl": "RényiCL"}


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
    prices = (ROOT / "docs" / "scale.md").read_text()
    for (paper, domain), of in found.items():
        short = next(short for short, name in PAPERS.items() if name == paper)
        price = prices.partition(f"\n| {short} | {domain} | ")[2].partition(" |")[0]
        counts = f"{of['printed']} | {of['runnable']} | {of['done']} | {price}"
        assert price
        assert f"| {paper} | {domain} | {counts} |" in page
    runnable, done = (sum(of[key] for of in found.values()) for key in ("runnable", "done"))
    assert f"{runnable} can be run here, and {done} are done" in page
    assert f"{done} of {runnable} runnable values" in (ROOT / "README.md").read_text()
