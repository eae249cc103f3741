"""Sweep files: what they ask for, and every mistake with its line."""

from pathlib import Path
from time import process_time

import pytest

from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables.build import with_files_beside
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.registry import DOMAINS, make_recipe
from contrastbench.losses import LOSSES, UserError
from contrastbench.losses.registry import SUPERVISED
from contrastbench.losses.spec import LossSpec

OWN = """
from contrastbench.losses import ScoreLoss
from contrastbench.benchmarks.tables.resolved import resolve

class Mine(ScoreLoss):
    def __init__(self, temperature: float = 0.5, margin: float = 0.1) -> None:
        super().__init__()
        self.temperature, self.margin = temperature, margin
"""
GOOD = """
seeds: [3, 4]
domains:
  graph: {datasets: [MUTAG, DD], recipe: {epochs: 5}}
  tabular: {}
losses: [none, adnce, {mine.py:Mine: {margin: 0.2}}]
tune: {trials: 4}
"""
BASE = "domains: {graph: {}}\nlosses: [infonce]\ntune: {trials: 3}\nseeds: 7-8\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "other.yaml").write_text("extends: my.yaml\nlosses: [rince]\n")

    def call(text: str):
        (tmp_path / "my.yaml").write_text(text.lstrip())
        return load_table("my.yaml")

    return call


def test_rows_are_losses_by_settings_and_columns_are_datasets(load) -> None:
    table = load(GOOD)
    assert (table.name, table.seeds) == ("my", [3, 4])
    assert [(c, what.domain, what.recipe) for c, what in table.columns.items()] == [
        ("MUTAG", "graph", {"epochs": 5}),
        ("DD", "graph", {"epochs": 5}),
        ("hidden-clusters", "tabular", {}),
    ]
    assert [row.name for row in table.rows] == [*("none", "adnce", "mine.py:Mine (margin=0.2)")]
    place = plan.runnable_places(table, ["column=DD"])[-1]
    assert place.work.loss.complete.params == {"margin": 0.2, "temperature": 0.5}
    assert place.work.loss.complete.name == "mine"
    assert len(place.work.loss.code) == 64


def test_a_row_may_run_in_some_columns_alone(load) -> None:
    table = load(GOOD + "only: {adnce: [MUT, hidden], none: [DD]}")
    work = {(p.row.name, p.setup.column) for p in plan.runnable_places(table, [])}
    assert {c for r, c in work if r == "adnce"} == {"MUTAG", "hidden-clusters"}
    assert {c for r, c in work if r == "none"} == {"DD"}
    assert len({c for r, c in work if "mine" in r}) == 3


def test_own_losses_lie_beside_the_file_or_in_the_current_folder(
    load, tmp_path: Path, monkeypatch
) -> None:
    own = "losses: [mine.py:Mine, infonce + 2*mine.py:Mine]"
    here = [
        place.work.key for place in plan.runnable_places(load("domains: {graph: {}}\n" + own), [])
    ]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    table = load_table("../my.yaml")
    assert [row.name for row in table.rows] == ["mine.py:Mine", "infonce + 2*mine.py:Mine"]
    assert [place.work.key for place in plan.runnable_places(table, [])] == here
    (tmp_path / "mine.py").rename("mine.py")
    assert [place.work.key for place in plan.runnable_places(load_table("../my.yaml"), [])] == here


def test_all_means_every_registered_loss_and_smoke_every_domain(load) -> None:
    table = load("domains: {graph: {}}\nlosses: [all]\n")
    assert [row.loss for row in table.rows] == list(LOSSES)
    assert table.seeds == [0, 1, 2, 3, 4]
    smoke = load_table("smoke")
    assert [what.domain for what in smoke.columns.values()] == list(DOMAINS)
    assert [row.loss for row in smoke.rows] == [*LOSSES, "none", *SUPERVISED]
    recipes = {column: make_recipe(what.domain, {}) for column, what in smoke.columns.items()}
    by_class = {column for column, recipe in recipes.items() if recipe.by_class}
    assert by_class
    for row in smoke.rows:
        for column in smoke.columns:
            runs = row.loss not in SUPERVISED or column in by_class
            assert ((row.name, column) in smoke.places) == runs
    assert smoke.seeds == [0]


@pytest.mark.parametrize(("given", "seeds"), [("3", [3]), ("0-2", [0, 1, 2]), ("[5, 7]", [5, 7])])
def test_seeds_are_a_number_a_range_or_a_list(load, given: str, seeds: list[int]) -> None:
    assert load(f"seeds: {given}\ndomains: {{graph: {{}}}}\nlosses: [all]\n").seeds == seeds


def test_a_domain_may_have_seeds_of_its_own(load, tmp_path: Path) -> None:
    load("seeds: 0-1\ndomains: {graph: {seeds: 1-3}, tabular: {}}\nlosses: [infonce]\n")
    shown = {None: ([1, 2, 3], [0, 1]), "0": ([], [0]), "3": ([3], []), "9": ([9], [9])}
    for asked, (graph, tabular) in shown.items():
        tasks = plan.make_plan("my.yaml", [], asked, False, None, tmp_path).tasks()
        assert [one.seed for one in tasks if one.experiment.domain == "graph"] == graph
        assert [one.seed for one in tasks if one.experiment.domain == "tabular"] == tabular
    Path("more.yaml").write_text("extends: my.yaml\ndomains: {image: {seeds: 5}}\n")
    with pytest.raises(UserError, match=r"more.yaml:2: .*my.yaml, which this sweep extends"):
        load_table("more.yaml")


def test_a_file_extends_another_by_data_and_losses(load) -> None:
    more = "domains: {tabular: {recipe: {epochs: 3}}}\nlosses: [mine.py:Mine]\n"
    table = load(f"extends: base.yaml\n{more}")
    assert [row.name for row in table.rows] == ["infonce", "mine.py:Mine"]
    assert {name: what.domain for name, what in table.columns.items()} == {
        "label-pairs": "graph",
        "hidden-clusters": "tabular",
    }
    assert (table.seeds, table.tune.trials, table.name) == ([7, 8], 3, "my")
    places = plan.runnable_places(table)
    assert places[0].work.key == plan.runnable_places(load_table("base.yaml"))[0].work.key


def test_a_loss_joins_a_sweep(load) -> None:
    load("domains: {graph: {}}\nlosses: [infonce, {adnce: {mu: 0.3}}]\n")
    here = LossSpec("adnce", {"mu": 0.3})
    table = load_table("my.yaml", losses=[here, LossSpec("rince")])
    assert [row.loss for row in table.rows] == ["infonce", "adnce", "rince"]
    assert table.title == f"{load_table('my.yaml', losses=[here]).title}, extended"
    made = plan.make_plan("my.yaml", [], None, False, None, Path("results"), losses=[here])
    assert [place.row.loss for place in made.places] == ["adnce"]
    with pytest.raises(UserError, match="adnce-table5 is no sweep"):
        load_table("adnce-table5", losses=[here])


def test_a_row_has_the_name_that_a_paper_prints(load) -> None:
    text = "title: Losses on MUTAG\ndomains: {graph: {datasets: [MUTAG]}}\nlosses:\n"
    text += "  - {infonce: {}, name: InfoNCE}\n  - {hcl: {beta: 2}, name: HCL, hard}\n"
    table = load(text.replace("HCL, hard", '"HCL, hard"') + "  - adnce\n")
    assert table.title == "Losses on MUTAG"
    assert [row.name for row in table.rows] == ["InfoNCE", "HCL, hard", "adnce"]
    assert [row.loss for row in table.rows] == ["infonce", "hcl", "adnce"]
    assert table.rows[1].params == {"beta": 2}
    tuned = load(text.replace("HCL, hard", '"HCL"') + "tune: {trials: 3}\n")
    assert [row.name for row in tuned.rows] == ["InfoNCE", "HCL"]


def test_a_dataset_has_a_column_of_its_name(load) -> None:
    file = "losses: [infonce]\ndomains:\n  tabular:\n    recipe: {epochs: 2}\n    datasets:\n"
    entries = "      - {iris: {epochs: 3}, name: Flowers}\n      - {iris: {}, name: Again}\n"
    columns = load(f"{file}{entries}      - wine\n").columns
    assert [(name, one.dataset) for name, one in columns.items()] == [
        ("Flowers", "iris"),
        ("Again", "iris"),
        ("wine", "wine"),
    ]
    assert [one.recipe["epochs"] for one in columns.values()] == [3, 2, 2]


def test_a_domain_may_have_no_data_set(load) -> None:
    table = load(
        "losses: [infonce]\ndomains: {graph: {datasets: []}, tabular: {datasets: [wine]}}\n"
    )
    assert list(table.columns) == ["wine"]


def test_a_name_of_any_length_is_read_once() -> None:
    start = process_time()
    assert with_files_beside("x" * 20_000, None) == "x" * 20_000
    assert process_time() - start < 1
