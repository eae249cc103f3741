"""Open the gate of a standing comparison where its controls show that it can tell losses apart.

A suite is released only if training that is known to be bad comes out worse than InfoNCE on nearly
every set. Each set has its own test, without a correction for their number: the share of the sets
that is asked for leaves no room for chance. Brings no torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contrastbench.benchmarks.comparison.compare import Comparison, baseline_row, compare_rows
from contrastbench.benchmarks.comparison.numbers import signed
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.tables.controls import CONTROLS
from contrastbench.benchmarks.tables.formats import markdown_table
from contrastbench.benchmarks.tables.resolved import Resolved
from contrastbench.errors import UserError

REQUIRED_SHARE = {  # percent of the sets on which a control comes out as it must
    "raw input": 90,
    "untrained": 90,
    "permuted positives": 90,
    "temperature 5": 90,
    "half the epochs": 80,
}
YES_OR_NO = {True: "yes", False: "no"}
GATE_RULE = (
    "Differences from InfoNCE are percent points. Worse and better are verdicts of the corrected "
    f"t-test on that set alone, at level {ALPHA:g}; below asks for the sign alone. A set counts "
    "for a control once all its seeds have records. A dash: the set has no such control."
)


@dataclass(frozen=True)
class ControlOutcome:
    """How a control came out on one set.

    Args:
        difference: from InfoNCE, in points; None: there is none yet.
        holds: whether the control is as it must be.
        words: how it came out.
    """

    difference: float | None
    holds: bool
    words: str

    @property
    def text(self) -> str:
        """Return the difference with its verdict."""
        shown = [] if self.difference is None else [signed(self.difference, 2)]
        return ", ".join([*shown, self.words])


@dataclass(frozen=True)
class Condition:
    """What the gate asks of one control, and what was seen on each set that has it."""

    control: str
    sets: Mapping[str, ControlOutcome]

    @property
    def least(self) -> int:
        """Return the percentage of the sets on which the control has to hold."""
        return REQUIRED_SHARE[self.control]

    @property
    def holds(self) -> int:
        """Return the number of sets on which the control is as it must be."""
        return sum(one.holds for one in self.sets.values())

    @property
    def passes(self) -> bool:
        """Return whether the control holds on enough sets; without a set it does not."""
        return bool(self.sets) and 100 * self.holds >= self.least * len(self.sets)

    @property
    def text(self) -> str:
        """Return on how many sets the control holds."""
        return f"{self.holds} of {len(self.sets)}" if self.sets else "no such row"


def conditions(resolved: Resolved) -> list[Condition]:
    """Return the conditions of the gate with what the records of a comparison say.

    Raises:
        UserError: it is no comparison of losses with InfoNCE and controls.
    """
    table = resolved.table
    controls = {line.control: line for line in resolved.lines if line.control and not line.repeats}
    if not (table.sweep and controls and baseline_row(resolved).row.loss == "infonce"):
        raise UserError(f"{table.name} has no gate: it needs infonce among its losses and controls")
    sets = {name: list(line.cells) for name, line in controls.items()}
    return judged(compare_rows(resolved), sets, table.seeds)


def judged(
    comparisons: Iterable[Comparison], sets: Mapping[str, Sequence[str]], seeds: Sequence[int]
) -> list[Condition]:
    """Return the conditions on comparisons with InfoNCE.

    Args:
        comparisons: those of the controls, among others.
        sets: by control, the sets that have it.
        seeds: those that a set needs before it counts.
    """
    found = {
        (one.control, one.column): one for one in comparisons if one.control and not one.other_data
    }
    return [
        Condition(
            name,
            {column: control_outcome(found.get((name, column)), name, seeds) for column in those},
        )
        for name, those in ((name, sets.get(name, ())) for name in REQUIRED_SHARE)
    ]


def control_outcome(one: Comparison | None, control: str, seeds: Sequence[int]) -> ControlOutcome:
    """Return how a control came out on a set."""
    if one is None:
        return ControlOutcome(None, False, "no shared seeds")
    if one.verdict == "failed":
        return ControlOutcome(None, False, one.failure)
    if missing := set(seeds) - set(one.seeds):
        return ControlOutcome(
            one.difference, False, f"{len(seeds) - len(missing)} of {len(seeds)} seeds"
        )
    if CONTROLS[control].must == "below":
        below = one.difference is not None and one.difference < 0
        return ControlOutcome(one.difference, below, "below" if below else "not below")
    word = control_verdict(one)
    return ControlOutcome(one.difference, word == "worse", word)


def control_verdict(one: Comparison) -> str:
    """Return whether the test on this set alone shows the control worse or better."""
    if one.difference is None or one.t.p is None or one.t.p > ALPHA:
        return "not shown"
    return "better" if one.difference > 0 else "worse"


def is_open(found: Iterable[Condition]) -> bool:
    """Return whether every condition of the gate holds."""
    return all(one.passes for one in found)


def gate_report(table: str, found: Sequence[Condition], format_: str) -> str:
    """Return the gate as Markdown for people, or as CSV with a line for each control and set."""
    if format_ == "csv":
        return files.comma_separated(gate_rows(table, found), "{:.6g}")
    asked = ["control", "must be", "on at least", "is so on", "passes"]
    totals = [
        [
            one.control,
            CONTROLS[one.control].must,
            f"{one.least} % of the sets",
            one.text,
            YES_OR_NO[one.passes],
        ]
        for one in found
    ]
    columns = list(dict.fromkeys(column for one in found for column in one.sets))
    header = ["set", *(one.control for one in found)]
    sets = [
        [name, *(one.sets[name].text if name in one.sets else "-" for one in found)]
        for name in columns
    ]
    first = f"The gate of {table} is {'open' if is_open(found) else 'closed'}."
    return "\n".join(
        [
            first,
            "",
            *markdown_table([asked, *totals]),
            "",
            *markdown_table([header, *sets]),
            "",
            GATE_RULE,
            "",
        ]
    )


def gate_rows(table: str, found: Iterable[Condition]) -> list[dict[str, Any]]:
    """Return a line for each control and set, as values by name."""
    return [
        {
            "table": table,
            "set": name,
            "control": one.control,
            "must": CONTROLS[one.control].must,
            "difference": one_set.difference,
            "verdict": one_set.words,
            "holds": YES_OR_NO[one_set.holds],
        }
        for one in found
        for name, one_set in one.sets.items()
    ]
