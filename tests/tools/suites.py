"""Judge by records which data sets a suite may have, and whether its controls show that it can see.

    python tests/tools/suites.py admit results/candidates/tables.yaml    # seeds 100-104 decide
    python tests/tools/suites.py gate standard                           # exit code 1: it is closed

`bench sweep FILE --seeds 100-104` makes the records of candidates.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from contrastbench.benchmarks.comparison.compare import baseline_row, compare
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.records.seeds import ADMISSION_SEEDS, parse_seeds
from contrastbench.benchmarks.report.words import markdown_table
from contrastbench.benchmarks.tables.controls import CONTROLS
from contrastbench.benchmarks.tables.entries import shown_value, signed
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.schema import Row, baseline
from contrastbench.benchmarks.tables.table import Table
from contrastbench.domains.registry import declaration

RESULTS = Path(__file__).parents[2] / "results"
MIN_GAIN = 3.0  # percent points, of training over its floor and of the anchor over training
MIN_DEVIATIONS = 2.0  # paired standard deviations, of training over its floor
FLOORS = ("raw input", "untrained")
ANCHORS = ("pairs by class", "cross entropy")
TRAINED, BAD = "InfoNCE", "temperature 5"
RULE_ROWS = (*FLOORS, "permuted positives", BAD, TRAINED, *ANCHORS)
HEADER = (
    *("set", *RULE_ROWS, "gain", "without twins", "paired std"),
    *("anchor", "seeds", "verdict", "reason"),
)
RULE = (
    "A set is admitted on three conditions. InfoNCE is above the better of raw input and untrained "
    f"by {MIN_GAIN:g} points and by {MIN_DEVIATIONS:g} paired standard deviations: the gain. Where "
    "there are classes, the better of pairs by class and cross entropy is above InfoNCE by "
    f"{MIN_GAIN:g} points: the anchor. {BAD.capitalize()} is worse than InfoNCE by the gate's test "
    f"of that set, at level {ALPHA:g}; a set that fails the others is not asked for it. Values are "
    "means over seeds. Permuted positives are shown and not judged. So is the least gain without "
    "test samples that equal training samples: what is left if training gains all it can on them."
)
# percent of the sets on which a control comes out as it must
REQUIRED_SHARE = {**dict.fromkeys(RULE_ROWS[:4], 90), "half the epochs": 80}


@dataclass(frozen=True)
class Candidate:
    """One data set with the scores of InfoNCE and of the controls that it can have, by seed."""

    name: str
    seeds: Sequence[int]
    scores: Mapping[str, Mapping[int, float]]
    bad_verdict: str = "untested"  # of the bad temperature, on this set alone
    equal: float = 0.0  # percent of test samples that equal a training one

    def mean(self, row: str) -> float:
        """Return the mean over seeds; minus infinity where there is no score."""
        return fmean(self.scores[row].values()) if self.scores.get(row) else float("-inf")

    def above(self, row: str, others: Sequence[str]) -> list[float]:
        """Return what a row is above the best of others, by the seeds that both have."""
        ours, theirs = self.scores.get(row, {}), self.scores.get(max(others, key=self.mean), {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    @property
    def gains(self) -> list[float]:
        """Return what training gains over the better of raw input and untrained."""
        return self.above(TRAINED, FLOORS)

    @property
    def rooms(self) -> list[float]:
        """Return what the better anchor is above training; empty: the set has no classes."""
        return self.above(max(ANCHORS, key=self.mean), [TRAINED])

    @property
    def missing(self) -> str:
        """Return which rows lack seeds; one that is refused anyway needs no bad temperature."""
        if not any(self.scores.values()):
            return "no records yet"
        short = [row for row, scores in self.scores.items() if len(scores) < len(self.seeds)]
        if short == [BAD] and [*self.reasons()]:
            return ""
        have = (f"{row} has {len(self.scores[row])} of {len(self.seeds)} seeds" for row in short)
        return ", ".join(have)

    def reasons(self) -> Iterator[str]:
        """Yield why the set is not admitted."""
        gain, spread = fmean(self.gains), stdev(self.gains)
        if gain < MIN_GAIN:
            yield f"training gains {signed(gain, 2)}, less than {MIN_GAIN:g} points"
        if gain < MIN_DEVIATIONS * spread:
            least = f"{MIN_DEVIATIONS:g} standard deviations of {spread:.2f}"
            yield f"training gains {signed(gain, 2)}, less than {least}"
        if self.rooms and fmean(self.rooms) < MIN_GAIN:
            room = signed(fmean(self.rooms), 2)
            yield f"classes add {room} to it, less than {MIN_GAIN:g} points"
        if self.bad_verdict not in ("untested", "worse"):
            drop = signed(fmean(self.above(BAD, [TRAINED])), 2)
            yield f"{BAD} is {drop} from it, and not shown to be worse"

    @property
    def judged(self) -> tuple[str, str]:
        """Return the verdict, and its reason in words."""
        if self.missing:
            return "open", self.missing
        if reasons := [*self.reasons()]:
            return "refused", "; ".join(reasons)
        has_anchor = any(row in self.scores for row in ANCHORS)
        return "admitted", "" if has_anchor else "no classes, so no upper anchor is asked for"

    @property
    def cells(self) -> list[str]:
        """Return the texts of the candidate's line."""
        means = [f"{self.mean(row):.2f}" if self.scores.get(row) else "" for row in RULE_ROWS]
        gain = signed(fmean(self.gains), 2) if self.gains else ""
        spread = f"{stdev(self.gains):.2f}" if len(self.gains) > 1 else ""
        room = signed(fmean(self.rooms), 2) if self.rooms else ""
        counts = (len(own) for row, own in self.scores.items() if own or row != BAD)
        least = self.gain_without_twins if self.gains and self.equal else ""
        fewest = str(min(counts, default=0))
        return [self.name, *means, gain, least, spread, room, fewest, *self.judged]

    @property
    def gain_without_twins(self) -> str:
        """Return the least gain on the samples that equal no training one."""
        on_twins = min(self.equal, 100 - max(map(self.mean, FLOORS)))
        least = (fmean(self.gains) - on_twins) / (1 - self.equal / 100)
        return signed(least, 2) if least > 0 else "none is sure"


def candidates(table: Table, seeds: Sequence[int], results: Path) -> Iterator[Candidate]:
    """Yield the data sets of a sweep file with InfoNCE, controls and fixed settings."""
    known = {row.control: row for row in table.rows if row.control}
    known[TRAINED] = trained_row(table)
    resolved = resolve(table.but(seeds=[*seeds]), None, results)
    bad = {
        one.column: control_verdict(one)
        for one in compare(resolved).places
        if one.control == BAD and {*seeds} <= {*one.seeds}
    }
    lines = {line.name: line for line in resolved.lines}
    for column in table.columns:
        scores = {
            name: {
                seed: shown_value(resolved, column, record)
                for seed, record in lines[known[name].name].cells[column].records.items()
                if seed in seeds
            }
            for name in RULE_ROWS
            if name in known and column in lines[known[name].name].cells
        }
        of = table.columns[column]
        about = declaration(of.domain).datasets.get(of.dataset)
        # attributes, which a recipe adds, tell nodes apart whose labels are equal
        plain = (
            table.places[known[TRAINED].name, column].work.recipe.get("features") != "attributes"
        )
        equal = about.equal if about and plain else 0.0
        yield Candidate(column, seeds, scores, bad.get(column, "untested"), equal)


def trained_row(table: Table) -> Row:
    """Return the row of InfoNCE in a file of candidates."""
    row = baseline(table.rows)
    assert row, f"{table.name} has no baseline"
    assert row.loss == "infonce", f"{table.name} compares with {row.loss}"
    assert BAD in {one.control for one in table.rows}, f"name {BAD!r} among its controls"
    assert not table.tune, "candidates have fixed settings"
    return row


def admission_table(found: Iterable[Candidate]) -> str:
    """Return the candidates with their verdicts."""
    return "\n".join([markdown_table([[*HEADER], *(one.cells for one in found)]), "", RULE, ""])


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
    """Return the conditions of the gate with what the records of a comparison say."""
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
            {one: outcome(found.get((name, one)), name, seeds[one]) for one in sets.get(name, ())},
        )
        for name in REQUIRED_SHARE
    ]


def outcome(one: Comparison | None, control: str, seeds: Sequence[int]) -> tuple[bool, str]:
    """Return whether a control came out on a set as it must, and how."""
    if one is None or one.difference is None:
        return False, one.failure if one else "no shared seeds"
    shown, shared = signed(one.difference, 2), len({*seeds} & {*one.seeds})
    if shared < len(seeds):
        return False, f"{shown}, {shared} of {len(seeds)} seeds"
    if CONTROLS[control].must == "below":
        return one.difference < 0, f"{shown}, {'below' if one.difference < 0 else 'not below'}"
    word = control_verdict(one)
    return word == "worse", f"{shown}, {word}"


def control_verdict(one: Comparison) -> str:
    """Return whether the test on this set alone, uncorrected, shows the control worse or better."""
    if one.difference is None or one.t.p is None or one.t.p > ALPHA:
        return "not shown"
    return "better" if one.difference > 0 else "worse"


def gate_report(found: Sequence[Condition]) -> str:
    """Return the gate as Markdown."""
    asked = [
        [
            *(one.control, CONTROLS[one.control].must, f"{REQUIRED_SHARE[one.control]} %"),
            *(f"{one.holds} of {len(one.sets)}", "yes" if one.passes else "no"),
        ]
        for one in found
    ]
    columns = dict.fromkeys(column for one in found for column in one.sets)
    sets = [
        [name, *(one.sets[name][1] if name in one.sets else "-" for one in found)]
        for name in columns
    ]
    head = ["control", "must be", "on at least", "is so on", "passes"]
    tables = [head, *asked], [["set", *(one.control for one in found)], *sets]
    return "\n\n".join(map(markdown_table, tables)) + "\n"


def main(what: str, name: str) -> int:
    """Print what is asked for, and return the exit code."""
    table = load_table(name)
    if what == "admit":
        found = candidates(table, parse_seeds(ADMISSION_SEEDS), RESULTS)
        print(admission_table(found), end="")
        return 0
    resolved = resolve(table, None, RESULTS)
    gate, wrong = conditions(resolved), compare(resolved).controls.wrong
    print(gate_report(gate), end="")
    for must, effects in wrong.items():  # such as a second search of InfoNCE that is not equal
        print(f"\nnot {must} over all sets: {', '.join(effect.name for effect in effects)}")
    return int(bool(wrong) or not all(one.passes for one in gate))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
