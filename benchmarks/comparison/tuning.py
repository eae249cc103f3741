"""Read how the settings of rows came about, where this bears on a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contrastbench.benchmarks.comparison.places import runs_behind
from contrastbench.benchmarks.tables.resolved import Line, Resolved, ResolvedCell
from contrastbench.benchmarks.tables.table import Selection


@dataclass(frozen=True)
class Tuning:
    """Rows that were not tuned as others were, by name."""

    beside: Sequence[str] = ()  # they have the settings that the baseline chose
    given: Sequence[str] = ()  # asked for, and they declare nothing to choose
    # losses that chose the baseline's loss on most sets: on how many, and on how many they have run
    alike: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    hardly: Sequence[str] = ()  # most of whose trials score alike

    @property
    def always_alike(self) -> bool:
        """Whether these losses chose the baseline's on all sets."""
        return all(n == of for n, of in self.alike.values())


def tuning_of(resolved: Resolved, base: str) -> Tuning:
    """Return what is to be said of the settings of a table's rows."""
    lines, table = resolved.lines, resolved.table
    return Tuning(
        [line.name for line in lines if line.row.beside],
        [one.name for one in lines if one.name in table.asked and resolved.has_no_choice(one)],
        chose_baseline(resolved, base) if resolved.selection == Selection.VALIDATION else {},
        [line.name for line in lines if is_hardly_tuned(line)],
    )


def chose_baseline(resolved: Resolved, base: str) -> dict[str, tuple[int, int]]:
    """Return the losses that chose to be the baseline's loss on most sets, and on how many.

    A control changes more than the loss, so beside it there are none.
    """
    theirs = next(line for line in resolved.lines if line.name == base)
    if theirs.control:
        return {}
    others = (line for line in resolved.lines if line.row.loss != theirs.row.loss)
    counts = {line.name: chose_loss_of(theirs, line) for line in others if not line.control}
    return {row: (n, of) for row, (n, of) in counts.items() if 2 * n > of}


def chose_loss_of(theirs: Line, line: Line) -> tuple[int, int]:
    """Return on how many sets a row chose the loss of another one, and on how many it has run.

    The first is 0 where it always chose the very runs of the other one, which nothing is said of.
    """
    own = [one for one in line.cells.values() if one.ok and not one.same_as]
    alike = [one for one in own if chosen_losses(one) == {theirs.row.loss}]
    pairs = [(theirs.cells[one.column], one) for one in alike if one.column in theirs.cells]
    others = any(runs_behind(a.records) != runs_behind(b.records) for a, b in pairs)
    return (len(alike), len(own)) if others else (0, len(own))


def chosen_losses(cell: ResolvedCell) -> set[str]:
    """Return the losses that a place has chosen: its row's own, or one that this is at a limit."""
    chosen = (
        [params.get("loss") for params, _ in cell.choices]
        if cell.choice.nested
        else [one.loss for one in cell.choice.settings]
    )
    return {str(one or cell.row.loss) for one in chosen}


def is_hardly_tuned(line: Line) -> bool:
    """Return whether on most sets most trials score alike, so that a search had nothing to find."""
    searched = [cell.choice for cell in line.cells.values() if cell.choice.distinct]
    return 2 * sum(one.scores_alike for one in searched) > len(searched)
