"""What runs could have seen on one data set is said."""

from math import inf

from contrastbench.benchmarks.comparison.compare import Comparison
from contrastbench.benchmarks.comparison.sight import Sight, sight_text, sights


def test_what_a_column_can_see_is_the_median_over_its_methods() -> None:
    powers = [(1.0, 7), (2.0, 20), (4.0, None)]
    tested = [
        Comparison(f"m{i}", "A", "graph", "MUTAG", (0, 1, 2), detectable=d, seeds_a_point=n)
        for i, (d, n) in enumerate(powers)
    ]
    untested = Comparison("other", "A", "graph", "MUTAG", (0,))
    assert sights([*tested, untested]) == [Sight("A", 3, 2.0, 20)]
    assert sights([untested]) == []
    assert sight_text([]) == ""
    assert sights(tested[2:]) == [Sight("A", 3, 4.0, inf)]
    assert "No number of seeds is enough for one point on A." in sight_text(sights(tested[2:]))
