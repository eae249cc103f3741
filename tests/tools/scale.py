"""Write `docs/scale.md`, which says what every table of the papers takes.

`scale.py` counts operations and assumes their rate. It reads records only for the
size of one.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.reading import all_records
from contrastbench.benchmarks.records.store import serialise_record
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.published_places import coverage
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.errors import UserError
from operations import operations

DOCS = Path(__file__).parents[2] / "docs"
COUNTED = DOCS.parent / "benchmarks" / "sweeps" / "operations.csv"  # what `bench plan` reads
TFLOPS = 10.0
CARDS = 8
LAUNCHES_MS = 5.0  # a step's products take less: its few hundred kernels take longer to launch

HEAD = """\
# What the papers' tables take

Each table of the papers has its price here, in hours of a card.

```bash
python tests/tools/scale.py                   # writes this page
```

The table lists the cells (experiments times seeds) of `bench sweep TABLE` with the published
parameters. Its hours are for one card, and for {cards} cards that run cells side by side.

- **The hours rest on an assumption.** Torch counts the products of one step of each recipe and of
  scoring. We divide them by {tflops:g} x 10^12 operations a second, in float32 and bf16 alike. The
  data sheet of NVIDIA's A100 says 19.5 for float32. An H200 had 20 and 178 in a ResNet-18's step:
  `python tests/gpu/times.py steps cuda`.
- **The hours are lower bounds.** They leave out views, optimizers, classifiers on the CPU, reading
  and the further scores of `score_on`.
- **They are a rough forecast.** With the one rate that suits 5,289 shipped records best,
  57 % took between half and twice the time. Like records forecast 93 % of 7,826 records so well, so
  `bench plan` uses these where there are any, and shows the hours below otherwise, as counted.

A step whose products take less than {launches:g} ms waits for launches: there several workers
a card help (`--jobs 2/device`). "Hours a value" are those of one card and printed value.
A record takes {record:.0f} kB. A cell in training has a checkpoint, of {checkpoint:.0f} MB for the
ResNet-50 of ADNCE.

"""
COLUMNS = (
    "table", "cells", "hours, one card", "hours a value", f"hours, {CARDS} cards",
    "longest cell, hours", "step, ms",
)  # fmt: skip
PARTS = ("paper", "domain", "hours, one card")
FOOT = """
Not counted are cells on a set without a declared number of nodes, or with an encoder that is
not known without its files, some of {lost}.
These tables are quoted only and have no cells: {quoted}.

Tables share some cells. By paper and domain each counts once.

{parts}
"""


class Cell(NamedTuple):
    """Hours of a cell and milliseconds of a step."""

    hours: float
    step: float


def main() -> None:
    """Write the page docs/scale.md."""
    tables: dict[str, dict[str, Experiment]] = {}
    seeds: dict[str, int] = {}
    quoted = []
    for name in filter(of_a_paper, catalogue.table_names()):
        try:
            plan = make_plan(name, [], None, False, None, DOCS / "no results")
        except UserError:
            quoted.append(name)
            continue
        tables[name] = {place.work.key: place.work for place in plan.places}
        seeds[name] = len(plan.seeds)
    every = {key: experiment for some in tables.values() for key, experiment in some.items()}
    cells = {key: cost(experiment, TFLOPS * 1e12) for key, experiment in every.items()}
    record = median(len(serialise_record(one)) for _, one in all_records(DOCS.parent / "results"))
    lines = [row(name, [cells[key] for key in some], seeds[name]) for name, some in tables.items()]
    shown = [line.strip("| ").split(" | ") for line in lines]
    known = [f"{one[0]},{one[1]},{one[2].replace(',', '')}" for one in shown if "<" not in one[2]]
    lost = ", ".join(name for name, some in tables.items() if None in map(cells.get, some))
    COUNTED.write_text("\n".join(["table,cells,hours", *known]) + "\n", "utf-8")
    hours: dict[tuple[str, str], dict[str, float]] = {}
    for name, some in tables.items():
        for key, experiment in some.items():
            own = hours.setdefault((name.partition("-")[0], experiment.domain), {})
            own[key] = max(own.get(key, 0.0), seeds[name] * hours_of(cells[key]))
    parts = [(*of, hours_in_words(sum(some.values()))) for of, some in sorted(hours.items())]
    shown = {"launches": LAUNCHES_MS, "record": record / 1e3, "checkpoint": checkpoint()}
    head = HEAD.format(tflops=TFLOPS, cards=CARDS, **shown)
    shares = table_of(PARTS, map(line_of, parts))
    foot = FOOT.format(lost=lost, quoted=", ".join(quoted), parts=shares)
    text = head + table_of(COLUMNS, lines) + "\n" + foot
    (DOCS / "scale.md").write_text(text, encoding="utf-8")


def of_a_paper(table: str) -> bool:
    """Return whether a paper printed the table; the standing comparison has no published values."""
    return "-table" in table


def cost(experiment: Experiment, rate: float) -> Cell | None:
    """Return the cost of one seed."""
    asked = operations(experiment)
    step = asked.step if asked and experiment.trained else 0.0
    return Cell(asked.all / rate / 3600, 1e3 * step / rate) if asked else None


def hours_of(cell: Cell | None) -> float:
    """Return the hours of one seed, 0 where they are not known."""
    return cell.hours if cell else 0.0


def row(name: str, cells: Sequence[Cell | None], seeds: int) -> str:
    """Return the line of one table."""
    counted = [cell for cell in cells if cell]
    hours = [cell.hours for cell in counted for _ in range(seeds)]
    steps = sorted(cell.step for cell in counted if cell.step)
    count = len(cells) * seeds
    values = coverage(resolve(load_table(name), None, DOCS / "no results")).runnable
    numbers = [sum(hours), side_by_side(hours), max(hours, default=0.0)]
    shown = f"{in_words(steps[0])} to {in_words(steps[-1])}" if steps else "-"
    texts = [name, str(count), *map(hours_in_words, numbers)]
    texts.insert(3, hours_in_words(sum(hours) / values) if values else "-")
    return line_of([*texts, shown])


def hours_in_words(hours: float) -> str:
    """Return hours with two decimals."""
    return "< 0.01" if 0 < hours < 0.005 else f"{hours:,.2f}"


def in_words(number: float) -> str:
    """Return a number with two digits, or with all digits before the point."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def line_of(texts: Sequence[str]) -> str:
    """Return the texts as a line of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def table_of(columns: Sequence[str], lines: Iterable[str]) -> str:
    """Return a Markdown table."""
    return "\n".join([line_of(columns), line_of(["---"] * len(columns)), *lines])


def side_by_side(hours: Sequence[float]) -> float:
    """Return the hours until the last card is done, when the longest cells begin."""
    cards = [0.0] * CARDS
    for one in sorted(hours, reverse=True):
        cards[cards.index(min(cards))] += one
    return max(cards)


def checkpoint() -> float:
    """Return the megabytes of a checkpoint for images of ADNCE: weights and two moments of Adam."""
    import torch

    from contrastbench.domains.image import ImageRecipe
    from contrastbench.domains.image.domain import ImageDomain

    recipe = ImageRecipe.of("image", {"preset": "adnce"})
    model = ImageDomain("digits", recipe, 0, None, torch.device("cpu")).model()
    return 3 * sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6


if __name__ == "__main__":
    main()
