"""Made-up records, over which a script measures commands."""

from pathlib import Path

import record_times
from contrastbench.benchmarks.records import packing, reading, store


def test_made_up_records_are_records_loose_and_packed(tmp_path: Path) -> None:
    table = tmp_path / "suite.yaml"
    table.write_text("domains: {graph: {}}\nlosses: [adnce, infonce, none]\n")
    assert record_times.fill(tmp_path, table, 20) == 20
    loose = [record for _, record in reading.all_records(tmp_path)]
    assert {store.key(record) == record["key"] for record in loose} == {True}
    list(packing.pack(tmp_path))
    assert [record for _, record in reading.all_records(tmp_path)] == loose
    assert len(loose) == 20
