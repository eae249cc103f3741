"""Which tables there are: ours, packages', users' own; never two of one name."""

import importlib
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import listing
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses import UserError
from made_records import made

OURS = Path(catalogue.__file__).parent


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of tables of an installed package."""
    (tmp_path / "another" / "tables").mkdir(parents=True)
    for folder in ("another", "another/tables"):
        (tmp_path / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "another", raising=False)
    entry = EntryPoint("another", "another.tables", catalogue.ENTRY_POINTS)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [entry])
    return tmp_path / "another" / "tables"


def test_tables_are_sorted_by_paper_and_number() -> None:
    names = catalogue.table_names()
    assert names.index("adnce-table5") < names.index("adnce-table10") < names.index("dasl-table5")
    assert set(names) == {path.stem for path in OURS.glob("*.yaml")}


def test_the_list_says_what_is_published_what_runs_and_what_is_done(tmp_path: Path) -> None:
    table = load_table("adnce-table5")
    work = table.experiment(next(r for r in table.rows if r.name == "ADNCE"), "NCI1")
    for seed, seconds in enumerate((7200.0, 3600.0)):
        made(tmp_path, work, seed, metrics={"accuracy": 80.0}, seconds=seconds)
    line = next(line for line in listing.tables(tmp_path) if line.startswith("adnce-table5 "))
    assert "36 values, 12 runnable,  1 done in 3.0 h " in line
    assert line.endswith(table.source)


def test_packages_announce_tables(announced: Path) -> None:
    shutil.copy(OURS / "adnce-table5.yaml", announced / "theirs-table1.yaml")
    assert "theirs-table1" in catalogue.table_names()
    assert load_table("theirs-table1").name == "theirs-table1"


def test_two_tables_of_one_name_are_refused(announced: Path, tmp_path: Path) -> None:
    assert catalogue.find_table(str(OURS / "adnce-table5.yaml")) == OURS / "adnce-table5.yaml"
    shutil.copy(OURS / "adnce-table5.yaml", tmp_path)
    with pytest.raises(
        UserError, match=r"two tables are named adnce-table5: .*tables/adnce-table5.yaml and /"
    ):
        catalogue.find_table(str(tmp_path / "adnce-table5.yaml"))
    shutil.copy(OURS / "adnce-table5.yaml", announced)
    with pytest.raises(
        UserError, match=r"two tables are named adnce-table5: .*rename one of the files"
    ):
        catalogue.table_names()


def test_what_is_not_there_is_named(announced: Path) -> None:
    with pytest.raises(
        UserError, match="unknown table 'adnce-tabel5': did you mean 'adnce-table5'"
    ):
        catalogue.find_table("adnce-tabel5")
    with pytest.raises(UserError, match=r"no file nowhere/mine.yaml: give a table's name"):
        catalogue.find_table("nowhere/mine.yaml")
    shutil.rmtree(announced)
    with pytest.raises(
        UserError,
        match=r"entry point another of contrastbench.tables names no package: another.tables",
    ):
        catalogue.table_names()
    (announced.parent / "__init__.py").write_text("raise RuntimeError('not today')")
    sys.modules.pop("another", None)
    importlib.invalidate_caches()
    with pytest.raises(UserError, match=r"entry point another .*\(RuntimeError: not today\)"):
        catalogue.table_names()


def test_hidden_files_are_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".eslintrc.yaml").write_text("root: true\nextends: eslint:recommended\n")
    (tmp_path / "mine.yaml").write_text("extends: standard\n")
    assert catalogue.own_sweep_files(Path("results")) == ["mine.yaml"]
