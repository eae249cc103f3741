"""The interval of one run over its test samples, from the bits that its record keeps."""

import json
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from contrastbench.benchmarks.records.scored import packed_bits, sample_interval

Bench = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("right", ["1101", "00010", "01111"])
def test_the_interval_is_that_of_all_draws_with_replacement(right: str) -> None:
    bits = [digit == "1" for digit in right]
    drawn = [100 * np.mean(draw) for draw in product(bits, repeat=len(bits))]
    expected = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    found = sample_interval({"details": {"right": packed_bits(bits)}})
    assert found == pytest.approx(tuple(expected))


def test_nothing_is_said_without_bits_or_where_all_are_alike() -> None:
    for bits in ([], [True] * 9, [False]):
        assert sample_interval({"details": {"right": packed_bits(bits)}}) is None
    assert sample_interval({"details": {}}) is None


@pytest.mark.parametrize("domain", ["tabular", "image"])
def test_a_record_keeps_which_test_samples_are_right(domain: str, bench: Bench) -> None:
    words = ["run", "--domain", domain, "--loss", "none", "--tiny"]
    record = json.loads(bench(*words, "--json")[1])
    right = f"{int(record['details']['right'], 16):b}"[1:]
    assert len(right) == record["details"]["samples"]["test"]
    assert 100 * right.count("1") / len(right) == pytest.approx(record["metrics"]["accuracy"])
    low, high = sample_interval(record)
    assert f"; by its test samples {low:.2f} to {high:.2f} (kept" in bench(*words)[1]
