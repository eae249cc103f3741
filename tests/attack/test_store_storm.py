"""Sweeps, merges and readers at once, stopped and continued at random."""

from collections.abc import Callable
from pathlib import Path

import pytest

import storm
from contrastbench.benchmarks.records import packing, packs, store
from counts import dice, times
from forked import lives

pytest.importorskip("matplotlib")


def test_a_storm(ram: Path, found: Callable[[str], None]) -> None:
    """Every record is there once in the end, and every reader saw what was published before it."""
    count, seed = times(500), str(dice("storm").random())
    with lives(storm) as living:
        assert living(("storm", str(ram), seed, count, None)) == [0]
    wrong = ram / "wrong"
    assert not wrong.exists(), wrong.read_text()
    results, published = ram / "results", storm.noted(ram)
    assert storm.names(results) == published
    store.remove_leftovers(results)
    list(packing.pack(results))
    assert storm.names(results) == published
    dataset = results / "runs/graph/MUTAG"
    (pack,) = dataset.glob(packs.PACK_PATTERN)
    assert [path for path in dataset.rglob("*") if path.is_file()] == [pack]
    found(f"store: {count} commands at once, stopped and continued: 0 lost of {len(published)}")
