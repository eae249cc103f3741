"""How often work is timed."""

import pytest

from contrastbench.benchmarks.perf import timing


@pytest.mark.parametrize(("took", "runs"), [(timing.LONG_RUN / 2, 4), (timing.LONG_RUN * 2, 1)])
def test_a_long_run_is_timed_once_and_a_short_one_again(
    monkeypatch: pytest.MonkeyPatch, took: float, runs: int
) -> None:
    calls: list[None] = []
    clock = iter(took * step for step in range(100))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert timing.best_of(lambda: calls.append(None)) == took
    assert len(calls) == runs
