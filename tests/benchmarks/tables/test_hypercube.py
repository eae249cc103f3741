"""Settings that are tried where nobody names any."""

import math
from itertools import product

import pytest

from contrastbench.benchmarks.tables.hypercube import (
    dependence,
    hypercube_settings,
    latin_hypercubes,
)
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import LossSpec

NAMES = [name for name in LOSSES if name not in ("dar", "free", "koleo")]


@pytest.mark.parametrize(("name", "count"), [*product(NAMES, (4, 6)), ("hcl", 2)])
def test_defaults_and_a_point_in_each_part_of_each_interval(name: str, count: int) -> None:
    defaults, *drawn = hypercube_settings(LossSpec(name), count)
    assert (defaults, len(drawn)) == ({}, count - 1)
    ranges = describe(name).ranges
    for parameter in drawn[0]:
        tune = ranges[parameter]
        if hasattr(tune, "ranges"):  # of ADNCE's mu, by the kind of its weight
            tune = tune.ranges["gaussian"]
        low, high = tune.tune
        parts = sorted(
            int((count - 1) * share(point[parameter], low, high, tune.log)) for point in drawn
        )
        assert parts == list(range(count - 1)), parameter
    for point in drawn:
        get_loss(name, **point)


def share(value: float, low: float, high: float, log: bool) -> float:
    """How far the value lies in the interval."""
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def test_choices_are_tried_only_where_there_is_no_number() -> None:
    assert all("variant" not in point for point in hypercube_settings(LossSpec("adnce"), 6))
    assert len(hypercube_settings(LossSpec("dar"), 6)) == 4, "two choices of two"


def test_what_is_given_is_not_varied() -> None:
    tried = hypercube_settings(LossSpec("adnce", {"temperature": 0.2, "weight": "gamma"}), 5)
    assert all(set(point) <= {"mu", "sigma"} for point in tried)
    assert max(point.get("mu", 0) for point in tried) > 1, "mu of a gamma density"
    assert hypercube_settings(LossSpec("infonce", {"temperature": 0.2}), 5) == []
    assert hypercube_settings(LossSpec("none"), 5) == []


def test_a_sum_varies_its_terms() -> None:
    tried = hypercube_settings(LossSpec("infonce + 0.5*decoupled"), 3)
    assert set(tried[1]) == {"infonce.temperature", "decoupled.temperature"}


def test_parameters_do_not_rise_together() -> None:
    draws = [dependence(places) for places in latin_hypercubes(3, 5)]
    tried = hypercube_settings(LossSpec("rmlcpc"), 6)[1:]
    ranks = {
        name: [sorted(p[name] for p in tried).index(q[name]) for q in tried] for name in tried[0]
    }
    assert dependence([*ranks.values()]) <= sorted(draws)[10]
