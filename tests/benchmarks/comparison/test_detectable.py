"""What runs could have seen on one data set is said."""

from math import inf

from contrastbench.benchmarks.comparison.effects import OverSets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.verdicts import Sight, sights
from contrastbench.benchmarks.report.words import said
from tools.told import verdicts


def test_what_a_column_can_see_is_the_median_over_its_methods() -> None:
    about = {"difference": 0.5, "n": 3, "ratio": 0.1}
    tested = [
        Comparison(f"m{i}", "A", "graph", "MUTAG", (0, 1, 2), spread=spread, **about)
        for i, spread in enumerate((0.5, 1.0, 4.0))
    ]
    seen = tested[1].detectable, tested[1].seeds_a_point
    untested = Comparison("other", "A", "graph", "MUTAG", (0,))
    assert sights([*tested, untested]) == [Sight("A", *seen)]
    assert sights([untested]) == []
    assert sights(tested[2:]) == [Sight("A", tested[2].detectable, inf)]
    assert (
        "No number of seeds is enough for one point on A."
        in said(verdicts(OverSets([]), tested[2:]), "sight")[0]
    )
