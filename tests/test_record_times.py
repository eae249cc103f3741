"""Made-up records, and the script that measures commands over many of them."""

from pathlib import Path

import pytest

import record_times
from contrastbench.benchmarks.records import reading, store


def test_made_up_records_are_records_loose_and_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suite.yaml").write_text("domains: {graph: {}}\nlosses: [adnce, infonce, none]\n")
    (places,) = record_times.by_dataset(tmp_path / "suite.yaml")
    for form, write in (("a", record_times.write_loose), ("b", record_times.write_packed)):
        folder = tmp_path / form / "runs" / "graph" / "label-pairs"
        assert write(record_times.made_up(places, 2), folder) == 2 * 2 * record_times.SEEDS
    loose, packed = (
        [record for _, record in reading.all_records(tmp_path / form)] for form in "ab"
    )
    assert loose == packed
    assert {store.key(record) == record["key"] for record in loose} == {True}
    assert len(loose) == 20


def test_losses_that_train_alike_are_one_experiment(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("domains: {graph: {}}\nlosses: [all, none]\n")
    (places,) = record_times.by_dataset(tmp_path / "suite.yaml")
    assert len({place.key for place in places}) == len(places) > 20


def test_the_script_prints_a_line_for_each_form_and_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_times, "FILE", "domains: {graph: {}}\nlosses: [adnce, none]\n")
    run = record_times.run
    once = run(["--help"])
    monkeypatch.setattr(record_times, "run", lambda words: once)
    lines = list(record_times.report([1]))
    assert {line.split(" | ")[1] for line in lines[2:]} == {"loose", "packed"}
    assert len(lines) == 2 + 2 * 5
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
