"""Write the tables of `docs/scale.md`, and `operations.csv`, which `bench plan` reads."""

from collections.abc import Iterable
from pathlib import Path

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables import catalogue
from contrastbench.errors import UserError
from frozen import with_table
from operations import operations

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scale.md"
COUNTED = ROOT / "benchmarks" / "sweeps" / "operations.csv"
RATE = 1e13  # operations a second, as the page says
TABLES = "| table | cells | hours, one card |\n| --- | --- | --- |\n"
SHARES = "| paper | domain | hours, one card |\n| --- | --- | --- |\n"


def main() -> None:
    rows, shares = list[tuple[str, ...]](), dict[tuple[str, str], dict[str, float]]()
    for name in (name for name in catalogue.table_names() if "-table" in name):
        try:
            plan = make_plan(name, [], None, False, None, ROOT / "no results")
        except UserError:  # it is quoted only
            continue
        works, seeds = {place.work.key: place.work for place in plan.places}, len(plan.seeds)
        hours = {key: seeds * hours_of(work) for key, work in works.items()}
        rows.append((name, str(len(works) * seeds), in_words(sum(hours.values()))))
        for key, work in works.items():  # tables share some cells
            share = shares.setdefault((name.partition("-")[0], work.domain), {})
            share[key] = max(share.get(key, 0.0), hours[key])
    known = [",".join((*row[:2], row[2].replace(",", ""))) for row in rows if "<" not in row[2]]
    COUNTED.write_text("\n".join(["table,cells,hours", *known, ""]), "utf-8")
    parts = [(*of, in_words(sum(found.values()))) for of, found in sorted(shares.items())]
    page = with_table(PAGE.read_text("utf-8"), TABLES, lines_of(rows))
    PAGE.write_text(with_table(page, SHARES, lines_of(parts)), encoding="utf-8")


def hours_of(work: Experiment) -> float:
    counted = operations(work)
    return counted.all / RATE / 3600 if counted else 0.0


def in_words(hours: float) -> str:
    return "< 0.01" if 0 < hours < 0.005 else f"{hours:,.2f}"


def lines_of(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    main()
