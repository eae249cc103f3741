"""Which tables there are: ours, packages', users' own; never two of one name."""

import shutil
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import listing
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses import UserError
from made_records import made

OURS = Path(catalogue.__file__).parent


def test_tables_are_sorted_by_paper_and_number() -> None:
    names = catalogue.table_names()
    assert names.index("adnce-table5") < names.index("adnce-table10") < names.index("dasl-table5")
    assert set(names) == {path.stem for path in OURS.glob("*.yaml")}


def test_the_list_says_what_is_published_what_runs_and_what_is_done(tmp_path: Path) -> None:
    table = load_table("adnce-table5")
    work = table.places["ADNCE", "NCI1"].work
    for seed, seconds in enumerate((7200.0, 3600.0)):
        made(tmp_path, work, seed, metrics={"accuracy": 80.0}, seconds=seconds)
    line = next(line for line in listing.tables(tmp_path) if line.startswith("adnce-table5 "))
    assert "36 values, 20 runnable,  1 done in 3.0 h " in line
    assert line.endswith(table.source)


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    assert catalogue.find_table(str(OURS / "adnce-table5.yaml")) == OURS / "adnce-table5.yaml"
    shutil.copy(OURS / "adnce-table5.yaml", tmp_path)
    with pytest.raises(UserError, match=r"two tables are named adnce-table5: .*rename your file"):
        catalogue.find_table(str(tmp_path / "adnce-table5.yaml"))


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="unknown table 'adnce-tabel5': did you mean 'adnce-t"):
        catalogue.find_table("adnce-tabel5")
    with pytest.raises(UserError, match=r"no file nowhere/mine.yaml: give a table's name"):
        catalogue.find_table("nowhere/mine.yaml")
