"""What is said of verdicts that a test has made, without a table of records."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from contrastbench.benchmarks.comparison.over_sets import OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.verdicts import Verdicts, verdicts_of
from contrastbench.benchmarks.report.words import OVER_SETS, said


def verdicts(
    over: OverSets,
    places: Sequence[Comparison] = (),
    asked: Sequence[str] = (),
    base: str = "infonce",
) -> Verdicts:
    """Return verdicts on a table of nothing."""
    about = {"name": "mine", "asked": asked, "remarks": [], "decimals": 1}
    table: Any = SimpleNamespace(**about, quick=None, is_quick=False, quotes=False)
    return verdicts_of(table, "infonce", list(places), over)


def controls_text(over: OverSets, places: Sequence[Comparison]) -> str:
    """Return what is said of the controls."""
    return " ".join(said(verdicts(over, places), "controls"))


def over_sets_text(over: OverSets) -> str:
    """Return what is said over data sets."""
    return " ".join(said(verdicts(over), *OVER_SETS))


def few_text(over: OverSets) -> str:
    """Return what is said where there are too few for a verdict."""
    return " ".join(said(verdicts(over), "too_few"))


def of_row(row: str, places: Sequence[Comparison], over: OverSets) -> str:
    """Return what is said of a row that is asked for."""
    return " ".join(said(verdicts(over, places, [row]), "asked"))
