"""Judge by records which data sets a suite may have, and whether its controls show that it can see.

    python tests/tools/suites.py admit results/candidates/tables.yaml    # seeds 100-104 decide
    python tests/tools/suites.py gate standard                           # exit code 1: it is closed

`bench sweep FILE --seeds 100-104` makes the records of candidates.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from scipy.special import stdtr

from contrastbench.benchmarks.comparison.compare import baseline_row, compare
from contrastbench.benchmarks.comparison.pairs import Comparison
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.report.words import markdown_table
from contrastbench.benchmarks.tables.entries import shown_value, signed
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Line, Resolved, resolve
from contrastbench.benchmarks.tables.table import Table

RESULTS = Path(__file__).parents[2] / "results"
SURE = 0.01  # p of a t-test over seeds, one-sided
MOST_SPREAD = 15.0  # percent of the gain: seeds' deviation of the difference of two settings
FLOORS = ("raw input", "untrained")
BAD = ("temperature 5", "permuted positives")  # one of them has to show
ANCHORS = ("pairs by class", "cross entropy")
HEADER = ("set", *FLOORS, *BAD, "InfoNCE", "again", *ANCHORS, "gain", "resolution", "seeds")
RULE = (
    "A set is admitted by its resolution, on three conditions. The gain of InfoNCE over the better "
    f"of raw input and untrained is above zero (t-test over seeds, p < {SURE:g}). The difference "
    f"of two sensible settings has a deviation over seeds of at most {MOST_SPREAD:g} % of "
    f"the gain. Temperature 5 or permuted positives are below InfoNCE (p < {SURE:g}). InfoNCE is "
    "the better of the two settings. Values are means over seeds; what labels add is shown and not "
    "judged."
)
# percent of the sets on which a control comes out as it must
# in percent of the sets; seeds are too few for a test on each, and without an effect 18 of 20 signs
# agree once in five thousand draws
REQUIRED_SHARE = {**dict.fromkeys((*FLOORS, *BAD[::-1]), 90), "half the epochs": 80}
Scores = Mapping[int, float]  # by seed


@dataclass(frozen=True)
class Candidate:
    """One data set with the scores of InfoNCE's settings and of the controls, by seed."""

    name: str
    seeds: Sequence[int]
    controls: Mapping[str, Scores]
    settings: Sequence[Scores]

    @cached_property
    def trained(self) -> list[Scores]:
        return sorted((one for one in self.settings if one), key=mean_of, reverse=True)

    def below(self, row: str) -> list[float]:
        ours, theirs = self.trained[0] if self.trained else {}, self.controls.get(row, {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    @property
    def gains(self) -> list[float]:
        """Return what training gains over the better of raw input and untrained."""
        found = [self.below(row) for row in FLOORS if self.controls.get(row)]
        return min(found, key=fmean, default=[])

    @property
    def resolution(self) -> float:
        """Return the deviation of the two settings' difference, in percent of the gain."""
        first, second = self.trained
        differences = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
        return 100 * stdev(differences) / fmean(self.gains)

    @property
    def missing(self) -> str:
        shown = [(f"setting {k + 1}", one) for k, one in enumerate(self.settings)]
        shown += [(row, one) for row, one in self.controls.items() if row not in ANCHORS]
        short = [
            f"{row} has {len(one)} of {len(self.seeds)} seeds"
            for row, one in shown
            if len(one) < len(self.seeds)
        ]
        if len(self.settings) < 2:
            short.append("one setting of InfoNCE alone")
        return ", ".join(short)

    def reasons(self) -> Iterator[str]:
        """Yield why the set is not admitted."""
        if not is_above(self.gains):
            yield f"training gains {signed(fmean(self.gains), 2)}, not surely anything"
        elif self.resolution > MOST_SPREAD:
            yield f"two settings differ by {self.resolution:.0f} % of the gain over seeds"
        if not any(is_above(self.below(row)) for row in BAD):
            yield "neither a bad temperature nor permuted positives show"

    @property
    def judged(self) -> tuple[str, str]:
        """Return the verdict, and its reason in words."""
        if self.missing:
            return "open", self.missing
        reasons = [*self.reasons()]
        return ("refused", "; ".join(reasons)) if reasons else ("admitted", "")

    @property
    def cells(self) -> list[str]:
        """Return the texts of the candidate's line."""
        rows = [self.controls.get(row, {}) for row in (*FLOORS, *BAD)]
        rows += [*self.trained, {}, {}][:2]
        rows += [self.controls.get(row, {}) for row in ANCHORS]
        means = [f"{mean_of(one):.2f}" if one else "" for one in rows]
        gain = signed(fmean(self.gains), 2) if self.gains else ""
        both = set.intersection(*map(set, self.trained)) if len(self.trained) == 2 else set()
        known = len(self.gains) > 1 and len(both) > 1
        fewest = min(map(len, [*self.settings, *self.controls.values()]), default=0)
        resolution = f"{self.resolution:.1f} %" if known else ""
        return [self.name, *means, gain, resolution, str(fewest), *self.judged]


def mean_of(scores: Scores) -> float:
    return fmean(scores.values())


def is_above(differences: Sequence[float]) -> bool:
    """Return whether a t-test over seeds shows that differences are above zero."""
    if len(differences) < 2:
        return False
    error = stdev(differences) / sqrt(len(differences))
    mean = fmean(differences)
    return mean > 0 and (not error or stdtr(len(differences) - 1, -mean / error) < SURE)


def candidates(table: Table, seeds: Sequence[int], results: Path) -> Iterator[Candidate]:
    """Yield the data sets of a sweep file with InfoNCE at fixed settings, and controls."""
    assert not table.tune, "candidates have fixed settings"
    resolved = resolve(table.but(seeds=[*seeds]), None, results)
    for column in table.columns:
        there = [
            (line, scores_of(resolved, line, column, seeds))
            for line in resolved.lines
            if column in line.cells
        ]
        controls = {line.control: scores for line, scores in there if line.control}
        trained = [(line, scores) for line, scores in there if not line.control]
        settings = [scores for line, scores in trained if line.row.loss == "infonce"]
        yield Candidate(column, seeds, controls, settings)


def scores_of(resolved: Resolved, line: Line, column: str, seeds: Sequence[int]) -> Scores:
    records = line.cells[column].records.items()
    return {seed: shown_value(resolved, column, one) for seed, one in records if seed in seeds}


def admission_table(found: Iterable[Candidate]) -> str:
    head = [*HEADER, "verdict", "reason"]
    return "\n".join([markdown_table([head, *(one.cells for one in found)]), "", RULE, ""])


@dataclass(frozen=True)
class Condition:
    """What the gate asks of one control: on each set that has it, whether it holds, in words."""

    control: str
    sets: Mapping[str, tuple[bool, str]]

    @property
    def holds(self) -> int:
        """Return the number of sets on which the control is as it must be."""
        return sum(holds for holds, _ in self.sets.values())

    @property
    def passes(self) -> bool:
        """Return whether the control holds on enough sets; without a set it does not."""
        return 100 * self.holds >= REQUIRED_SHARE[self.control] * len(self.sets) > 0


def conditions(resolved: Resolved) -> list[Condition]:
    table = resolved.table
    controls = {line.control: line for line in resolved.lines if line.control}
    assert baseline_row(resolved).row.loss == "infonce", f"{table.name} has no gate"
    sets = {name: list(line.cells) for name, line in controls.items()}
    seeds = {column: table.seeds_of(column) for column in table.columns}
    return judged(compare(resolved).places, sets, seeds)


def judged(
    comparisons: Iterable[Comparison],
    sets: Mapping[str, Sequence[str]],
    seeds: Mapping[str, Sequence[int]],
) -> list[Condition]:
    """Return the conditions on comparisons with InfoNCE; a set counts once it has all seeds."""
    found = {(one.control, one.column): one for one in comparisons if one.control}
    return [
        Condition(
            name,
            {one: outcome(found.get((name, one)), seeds[one]) for one in sets.get(name, ())},
        )
        for name in REQUIRED_SHARE
    ]


def outcome(one: Comparison | None, seeds: Sequence[int]) -> tuple[bool, str]:
    """Return whether a control is below InfoNCE on a set, by all seeds, and by how much."""
    if one is None or one.difference is None:
        return False, one.failure if one else "no shared seeds"
    shown, shared = signed(one.difference, 2), len({*seeds} & {*one.seeds})
    if shared < len(seeds):
        return False, f"{shown}, {shared} of {len(seeds)} seeds"
    return one.difference < 0, f"{shown}, {'below' if one.difference < 0 else 'not below'}"


def gate_report(found: Sequence[Condition]) -> str:
    asked = [
        [
            *(one.control, f"{REQUIRED_SHARE[one.control]} %"),
            *(f"{one.holds} of {len(one.sets)}", "yes" if one.passes else "no"),
        ]
        for one in found
    ]
    columns = dict.fromkeys(column for one in found for column in one.sets)
    sets = [
        [name, *(one.sets[name][1] if name in one.sets else "-" for one in found)]
        for name in columns
    ]
    head = ["control", "below on at least", "is so on", "passes"]
    tables = [head, *asked], [["set", *(one.control for one in found)], *sets]
    return "\n\n".join(map(markdown_table, tables)) + "\n"


def main(what: str, name: str) -> int:
    table = load_table(name)
    if what == "admit":
        found = candidates(table, parse_seeds(ADMISSION_SEEDS), RESULTS)
        print(admission_table(found), end="")
        return 0
    resolved = resolve(table, None, RESULTS)
    gate, wrong = conditions(resolved), compare(resolved).wrong
    print(gate_report(gate), end="")
    for one in wrong:  # controls by their verdicts over sets
        print(f"\nnot {one.must} over all sets: {one.effect.name}")
    return int(bool(wrong) or not all(one.passes for one in gate))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
