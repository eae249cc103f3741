"""Order the losses of the standing comparison for the first page of the report."""

from collections.abc import Sequence
from dataclasses import dataclass

from contrastbench.benchmarks.comparison.compare import compare_rows
from contrastbench.benchmarks.comparison.controls import over_sets_of
from contrastbench.benchmarks.comparison.effects import Effect
from contrastbench.benchmarks.comparison.verdicts import Verdicts
from contrastbench.benchmarks.report.chart import Forest, axis
from contrastbench.benchmarks.report.contents import Cost, Shown
from contrastbench.benchmarks.tables.choices import as_given
from contrastbench.benchmarks.tables.load import NEWEST
from contrastbench.benchmarks.tables.resolved import Line, Resolved

BASELINE = "baseline"


@dataclass(frozen=True)
class LeaderboardRow:
    """One line of the leaderboard."""

    line: Line
    effect: Effect
    failures: int  # seeds without a number
    cost: Cost | None
    setting: str  # how its parameters came about
    leads: bool = False  # this comparison does not find it worse than the leader

    @property
    def name(self) -> str:
        """Return the name of the method, with others that are the same runs."""
        return self.effect.name


@dataclass(frozen=True)
class Board:
    """The leaderboard of a comparison that decides over data sets."""

    shown: Shown
    verdicts: Verdicts
    rows: Sequence[LeaderboardRow]  # best first
    controls: Sequence[LeaderboardRow]
    domains: Sequence[str]
    forest: Forest

    @property
    def readable(self) -> bool:
        """Return whether no control came out as it must not."""
        return all(row.effect.came_out for row in self.controls)

    @property
    def worse(self) -> list[str]:
        """Return the losses that are found worse than the leader."""
        return [row.name for row in self.rows if not row.leads]


def leaderboard(shown: Sequence[Shown]) -> Board | None:
    """Return the leaderboard of the standing comparison, or else of the first that decides."""
    found = [one for one in shown if one.over.effects and one.over.decides]
    found.sort(key=lambda one: one.table.name != NEWEST["standard"])
    first = next(iter(found), None)
    return board(first, first.verdicts) if first and first.verdicts else None


def board(shown: Shown, verdicts: Verdicts) -> Board:
    """Return the leaderboard of a table that decides over data sets."""
    over, base = verdicts.over, verdicts.base
    zero = Effect(base, {}, 0, 0.0, (0.0, 0.0), verdict=BASELINE)
    effects = sorted([zero, *over.contestants], key=lambda one: -one.estimate)
    first = not_worse(shown.resolved, effects[0].row)
    rows = [leaderboard_row(shown, one, one.row in first) for one in effects]
    controls = [leaderboard_row(shown, one, False) for one in over.effects if one.control]
    ends = [end for one in over.contestants for end in one.interval]
    return Board(shown, verdicts, rows, controls, over.domains, axis(ends, over.margin))


def not_worse(resolved: Resolved, leader: str) -> set[str]:
    """Return the leader and the losses that are not worse than it over data sets."""
    over = over_sets_of(resolved, leader, compare_rows(resolved, leader))
    return {leader, *(one.row for one in over.contestants if one.verdict != "worse")}


def leaderboard_row(shown: Shown, effect: Effect, leads: bool) -> LeaderboardRow:
    """Return the line of one method."""
    line = next(one for one in shown.resolved.lines if one.name == effect.row)
    failed = sum(len(seeds) for cell in line.cells.values() for seeds in cell.failed.values())
    cost = next((one for one in shown.costs if one.row == effect.row), None)
    return LeaderboardRow(line, effect, failed, cost, setting(shown.resolved, line), leads)


def setting(resolved: Resolved, line: Line) -> str:
    """Return how the parameters of a method came about, and whether it joined."""
    joined = "joined, " * (line.name in resolved.table.joined)
    if line.control:
        return "control"
    if as_given(resolved, line):
        return f"{joined}as given"
    if line.row.beside and not line.repeats:
        return f"{joined}temperature and rate of the baseline"
    tried = max(
        (
            len(cell.experiments) if cell.choice.nested else cell.choice.best_of
            for cell in line.cells.values()
        ),
        default=0,
    )
    return joined + (f"tuned, {tried} tried" if tried else "defaults")
