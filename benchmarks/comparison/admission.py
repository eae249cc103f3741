"""Admit data sets to a suite by a rule, before any loss is compared on them.

A set on which training gains nothing clear, on which classes would add nothing to it, or on which a
bad temperature does as well, cannot tell losses apart. The rule looks at InfoNCE and at controls
alone, on seeds of their own. Records decide, so a verdict can be repeated. Brings no torch.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from contrastbench.benchmarks.comparison.compare import compare_rows
from contrastbench.benchmarks.comparison.gate import control_verdict
from contrastbench.benchmarks.comparison.numbers import signed
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.records.files import no_formula
from contrastbench.benchmarks.tables.controls import baseline
from contrastbench.benchmarks.tables.entries import shown_value
from contrastbench.benchmarks.tables.formats import escaped_cell
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.table import Row, Table
from contrastbench.errors import UserError

MIN_GAIN = 3.0  # percent points, of training over its floor and of the anchor over training
MIN_DEVIATIONS = 2.0  # paired standard deviations, of training over its floor
FLOORS = ("raw input", "untrained")
ANCHORS = ("pairs by class", "cross entropy")
TRAINED = "InfoNCE"
BAD = "temperature 5"
UNTESTED = "untested"
RULE_ROWS = (*FLOORS, "permuted positives", BAD, TRAINED, *ANCHORS)
HEADER = ("set", *RULE_ROWS, "gain", "paired std", "anchor", "seeds", "verdict", "reason")
BySeed = dict[int, float]


@dataclass(frozen=True)
class Candidate:
    """One data set with the scores of InfoNCE and of the controls, by row and seed.

    Args:
        name: that of its column.
        seeds: those that every row has to have.
        scores: of each row that the set can have; the others are not asked for.
        bad_verdict: that of the gate's test of the bad temperature on this set.
    """

    name: str
    seeds: Sequence[int]
    scores: dict[str, BySeed]
    bad_verdict: str = UNTESTED

    def mean(self, row: str) -> float | None:
        """Return the mean over seeds; None where there is no score."""
        return fmean(self.scores[row].values()) if self.scores.get(row) else None

    @property
    def missing(self) -> str:
        """Return how many seeds the rows lack, in words; empty where none does.

        A set that is refused without the bad temperature needs no run of it.
        """
        if not any(self.scores.values()):
            return "no records yet: bench suite admit --run makes them"
        short = [row for row, scores in self.scores.items() if len(scores) < len(self.seeds)]
        if short == [BAD] and self.reasons:
            return ""
        return ", ".join(
            f"{row} has {len(self.scores[row])} of {len(self.seeds)} seeds" for row in short
        )

    def best(self, rows: Sequence[str]) -> str | None:
        """Return the row with the highest mean; None where the set has none of them."""
        there = [row for row in rows if self.scores.get(row)]
        return max(there, key=lambda row: self.mean(row) or 0.0) if there else None

    def above(self, row: str, other: str | None) -> list[float]:
        """Return the differences of two rows over the seeds that both have."""
        ours, theirs = self.scores.get(row, {}), self.scores.get(other or "", {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    @property
    def gains(self) -> list[float]:
        """Return what training gains over the better of raw input and untrained, by seed."""
        return self.above(TRAINED, self.best(FLOORS))

    @property
    def rooms(self) -> list[float]:
        """Return what the upper anchor is above training, by seed; empty: there is no anchor."""
        anchor = self.best(ANCHORS)
        return self.above(anchor, TRAINED) if anchor else []

    @property
    def reasons(self) -> list[str]:
        """Return why the set is not admitted; empty: it is, or seeds are missing."""
        found, gain = [], fmean(self.gains)
        if gain < MIN_GAIN:
            found.append(f"training gains {signed(gain, 2)}, less than {MIN_GAIN:g} points")
        if gain < MIN_DEVIATIONS * stdev(self.gains):
            deviation = f"{MIN_DEVIATIONS:g} standard deviations of {stdev(self.gains):.2f}"
            found.append(f"training gains {signed(gain, 2)}, less than {deviation}")
        if self.rooms and fmean(self.rooms) < MIN_GAIN:
            room = signed(fmean(self.rooms), 2)
            found.append(f"classes add {room} to it, less than {MIN_GAIN:g} points")
        if self.bad_verdict not in (UNTESTED, "worse"):
            drop = signed(fmean(self.above(BAD, TRAINED)), 2)
            found.append(f"{BAD} is {drop} from it, and not shown to be worse")
        return found

    @property
    def judged(self) -> tuple[str, str]:
        """Return the verdict, and its reason in words."""
        if self.missing:
            return "open", self.missing
        if reasons := self.reasons:
            return "refused", "; ".join(reasons)
        has_anchor = any(row in self.scores for row in ANCHORS)
        return "admitted", "" if has_anchor else "no classes, so no upper anchor is asked for"


def candidates(table: Table, seeds: Sequence[int], results: Path) -> Iterator[Candidate]:
    """Yield the candidates of a sweep with their records.

    Raises:
        UserError: it has no controls or no InfoNCE, or the seeds are too few.
    """
    if len(seeds) < 2:
        raise UserError(f"{len(seeds)} seed has no standard deviation: give two or more")
    rows = {row.name: name for name, row in rule_rows(table).items()}
    resolved = resolve(table.but(seeds=[*seeds]), None, results)
    verdicts = bad_verdicts(resolved, seeds)
    lines = {rows[line.name]: line for line in resolved.lines if line.name in rows}
    for column in table.columns:
        scores = {
            name: {
                seed: shown_value(resolved, column, record)
                for seed, record in lines[name].cells[column].records.items()
                if seed in seeds
            }
            for name in RULE_ROWS
            if name in lines and column in lines[name].cells
        }
        yield Candidate(column, seeds, scores, verdicts.get(column, UNTESTED))


def bad_verdicts(resolved: Resolved, seeds: Sequence[int]) -> dict[str, str]:
    """Return the verdict of the gate's test of the bad temperature, by set with all seeds."""
    return {
        one.column: control_verdict(one)
        for one in compare_rows(resolved)
        if one.control == BAD and not one.other_data and {*seeds} <= {*one.seeds}
    }


def rule_rows(table: Table) -> dict[str, Row]:
    """Return the rows that the rule looks at, by their names in the report.

    Raises:
        UserError: the table is no sweep with controls and InfoNCE.
    """
    controls = {row.control: row for row in table.rows if row.control}
    trained = baseline(table.rows)
    if not controls or trained is None or trained.loss != "infonce":
        raise UserError(f"{table.name}: give controls and infonce among its losses")
    if BAD not in controls:
        raise UserError(f"{table.name}: name {BAD!r} among its controls")
    if table.tune:
        raise UserError(f"{table.name}: candidates have fixed settings: remove tune")
    known = {**controls, TRAINED: trained}
    return {name: known[name] for name in RULE_ROWS if name in known}


def admission_table(found: Sequence[Candidate], format_: str) -> str:
    """Return the candidates as a table of Markdown or CSV."""
    rows = [candidate_cells(one) for one in found]
    if format_ == "csv":
        text = io.StringIO()
        named = [[no_formula(name), *values] for name, *values in rows]
        csv.writer(text, lineterminator="\n").writerows([HEADER, *named])
        return text.getvalue()
    head = [f"| {' | '.join(HEADER)} |", "| " + " | ".join("---" for _ in HEADER) + " |"]
    body = [f"| {' | '.join(map(escaped_cell, row))} |" for row in rows]
    return "\n".join([*head, *body, "", rule(), ""])


def candidate_cells(one: Candidate) -> list[str]:
    """Return the texts of a candidate's line."""
    means = ["" if one.mean(row) is None else f"{one.mean(row):.2f}" for row in RULE_ROWS]
    gain = signed(fmean(one.gains), 2) if one.gains else ""
    spread = f"{stdev(one.gains):.2f}" if len(one.gains) > 1 else ""
    room = signed(fmean(one.rooms), 2) if one.rooms else ""
    fewest = min((len(own) for row, own in one.scores.items() if own or row != BAD), default=0)
    return [one.name, *means, gain, spread, room, str(fewest), *one.judged]


def rule() -> str:
    """Return the rule in words."""
    return (
        "A set is admitted on three conditions. InfoNCE is above the better of raw input and "
        f"untrained by {MIN_GAIN:g} points and by {MIN_DEVIATIONS:g} paired standard "
        "deviations: the "
        "gain. Where there are classes, the better of pairs by class and cross entropy is above "
        f"InfoNCE by {MIN_GAIN:g} points: the anchor. {BAD.capitalize()} is worse than InfoNCE by "
        f"the gate's test of that set, at level {ALPHA:g}; a set that fails the others is not "
        "asked for it. Values are means over seeds. "
        "Permuted positives "
        "are shown and not judged."
    )
