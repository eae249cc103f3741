"""Say what settings beyond the ends of a suite's shared points would change.

    python tests/tools/outer_points.py results/search-ends.yaml

The file's rows are losses of the suite, and its columns are `SET, END`: a point beyond an end. Each
loss chooses among the suite's points, as it does there, and then among these and the outer ones,
where it has its defaults, and the loss that it becomes where that is a row of the file too. All
numbers are of the file's seeds.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from scipy import stats

from choice_rules import Experiment, scores, seed_numbers
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.points import BEST
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.scores import Scores
from contrastbench.benchmarks.tables.table import Table

BARE = "raw input", "untrained"


def set_of(column: str) -> str:
    """Return the set of a column.

    >>> set_of("letter, cold")
    'letter'
    """
    return column.rsplit(", ", 1)[0]


def inner_points(suite: Table, row: str, column: str) -> list[tuple[Experiment, int]]:
    """Return a loss's settings with the suite's points that they are at."""
    place = suite.places[row, column]
    choice = place.search.ask(Scores(place, Path()))
    works = map(place.experiment, choice.settings)
    return list(zip(works, choice.points, strict=True))


def outer_points(table: Table, rows: Sequence[str], column: str) -> list[tuple[Experiment, int]]:
    """Return settings beyond the ends of a set with their points."""
    ends = [name for name in table.columns if set_of(name) == column]
    ends = [name for name in ends if table.seeds_of(name) == table.seeds]  # others lost at once
    known = [row for row in rows if (row, ends[0]) in table.places]
    return [(table.places[row, end].work, 100 + k) for k, end in enumerate(ends) for row in known]


def gains(shown: Resolved) -> dict[str, float]:
    """Return what InfoNCE gains on each set, in points."""
    lines = {line.name: line.cells for line in shown.lines}
    mean = {
        (name, column): pd.Series([r["metrics"][r["main"]] for r in cell.records.values()]).mean()
        for name in ("infonce", *BARE)
        for column, cell in lines[name].items()
    }
    return {
        column: mean["infonce", column] - max(mean[bare, column] for bare in BARE)
        for column in lines["infonce"]
    }


def numbers(suite: Table, table: Table, results: Path) -> Iterator[dict[str, object]]:
    """Yield each loss's number with each seed of each set, without and with outer points."""
    sets = {set_of(end) for end in table.columns}
    for row in (line.name for line in table.rows):
        for column in (name for name in suite.columns if name in sets):
            inner = inner_points(suite, row, column)
            losses = dict.fromkeys(work.loss.name for work, _ in inner)  # the limit is first
            works, points = zip(*inner, *outer_points(table, [*losses], column), strict=True)
            validation, test = scores(works, list(table.seeds), results)
            some = len(inner), len(works)
            found = [seed_numbers(validation[:n], test[:n], BEST, points[:n]) for n in some]
            for seed, (before, after) in enumerate(zip(*found, strict=True)):
                yield {
                    "loss": row,
                    "domain": suite.domain_of(column),
                    "set": column,
                    "seed": seed,
                    "before": before,
                    "after": after,
                }


def half(values: pd.Series) -> float:
    """Return half the 95 % interval of a mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.sem())


def main() -> None:
    """Print effects without and with outer points, in percent of the gain, by domain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--suite", default="standard-3")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    suite, table = load_table(asked.suite), load_table(asked.file)
    gain = gains(resolve(suite, None, asked.results))
    frame = pd.DataFrame(numbers(suite, table, asked.results))
    kinds = ["before", "after"]
    frame[kinds] = frame[kinds].mul(100 / frame["set"].map(gain), axis=0)
    by = frame.groupby(["domain", "loss", "seed"], sort=False)[kinds].mean()
    base = by.xs("infonce", level="loss").reindex(by.index.droplevel("loss"))
    for part, values in (("level", by), ("effect", by - base.to_numpy())):
        some = values.assign(change=values["after"] - values["before"])
        shown = some.groupby(["domain", "loss"], sort=False).agg(["mean", half]).round(1)
        print(part, shown.to_string(), sep="\n")


if __name__ == "__main__":
    main()
