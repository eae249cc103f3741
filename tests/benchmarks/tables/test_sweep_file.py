"""Sweep files: what they ask for, and every mistake with its line."""

import re
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
    for wrong in ("{hcl: [MUT]}", "{adnce: [MUTAC]}", "{adnce: []}"):
        with pytest.raises(UserError, match=r"^my\.yaml:7: "):
            load(GOOD + f"only: {wrong}")


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


CHANGES = [
    ("none,", "debiased, debiased: {tau_plus: 0.1},", "5: losses debiased and debiased "),
    ("none, adnce", "none, 3", "5: losses.1=3: give a text or keys with values"),
    ("[3, 4]", "1.5", "1: seeds=1.5: give a text or a whole number or a list"),
    ("epochs: 5", "rate: 0.5", "3: unknown recipe key of domain graph 'rate'"),
    ("epochs: 5", "epochs: many", "3: recipe epochs='many'"),
    ("graph:", "grph:", "3: unknown domain 'grph': did you mean 'graph'"),
    ("DD]", "DDD]", "3: unknown graph dataset 'DDD': did you mean 'DD'"),
    ("DD]", "MUTAG]", "3: dataset MUTAG is listed twice"),
    ("DD]", "{DD: x}]", "3: DD is 'x': give recipe values"),
    ("DD]", "{DD: {}, name: MUTAG}]", "3: dataset MUTAG is listed twice"),
    ("none, adnce", "none, adnc", "5: unknown loss 'adnc': did you mean 'adnce'"),
    ("none, adnce", "adnce, adnce", "5: loss adnce is listed twice"),
    ("none,", "none: {mu: 1},", "5: none is the untrained encoder and has no param"),
    ("mine.py", "yours.py", "5: no file yours.py"),
    ("[3, 4]", "4-3", "1: seeds '4-3': give distinct numbers"),
    ("seeds:", "sees:", "1: unknown key 'sees': did you mean 'seeds'"),
    ("[none, adnce, {mine.py:Mine: {margin: 0.2}}]", "[]", "5: the sweep has no losses: give"),
    ("none,", "{infonce: {}, hcl: {}, name: A},", "5: name A is for one loss, not for 2: give"),
    ("none,", "{name: A},", "5: name A is for one loss, not for 0: write {LOSS: {}, name: A}"),
    ("none,", "{infonce: {}, name: {a: 1}},", "5: name is {'a': 1}: give a text"),
    ("none,", "{infonce: warm},", "5: infonce is 'warm': give its parameters, such as {temper"),
    ("none,", "{},", "5: the entry is empty: name a loss, or remove it"),
    ("none,", "{all: {}, name: All},", "5: all stands for every loss and takes no name"),
    ("tune: {trials", "tune: {seeds: [3], trials", "6: seeds [3] are in tune and in seeds"),
    ("tune:", "controls: [untraned]\ntune:", "6: unknown control 'untraned': did you mean"),
]
FILES = [
    *((key, "1: the sweep has no losses: give") for key in ("domains: {graph: {}}",)),
    *((key, "1: the sweep has no domains: give") for key in ("controls: true", "draft: true")),
    *((text, "1: the file has no keys at its top") for text in ("5", "[{a: 1}]", "losses")),
    ("extends: base.yaml", "1: nothing is added"),
    ("extends: base.yaml\nseeds: 1-2\nlosses: [adnce]", "2: base.yaml, which this sweep extends,"),
    ("extends: base.yaml\nlosses: [infonce]", "2: loss infonce is listed twice"),
    ("extends: base.yaml\ndomains: {graph: {}}", "2: dataset label-pairs is listed twice"),
    ("extends: my.yaml\nlosses: [infonce]", "1: this sweep extends itself: extend another"),
    ("extends: other.yaml\nlosses: [infonce]", "1: other.yaml:1: this sweep extends itself"),
    ("extends: adnce-table5\nlosses: [infonce]", "1: adnce-table5 is no sweep: extend a"),
    ("losses: [infonce]\ndomains: {graph: {datasets: []}}", "2: the sweep has no data sets: name"),
]


@pytest.mark.parametrize(("old", "new", "message"), [*CHANGES, *((GOOD, *file) for file in FILES)])
def test_a_mistake_is_one_line_with_its_line(load, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError, match=f"^my.yaml:{re.escape(message)}"):
        load(GOOD.replace(old, new))


def test_a_value_out_of_range_is_found_before_a_sweep(load) -> None:
    load(GOOD.replace("none, adnce", "none, adnce: {sigma: -1}"))
    wrong = r"my.yaml: adnce \(sigma=-1\): sigma must be a finite number > 0, got -1"
    with pytest.raises(UserError, match=wrong):
        load_table("my.yaml", check_values=True)
    load(GOOD)
    load_table("my.yaml", check_values=True)


def test_a_value_out_of_range_in_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "title: t\nsource: s\ndecimals: 1\ndomain: graph\ncolumns: "
        "{A: {dataset: MUTAG}, Q: {}}\nrows:\n"
        "  - {name: quoted}\n  - name: ours\n    loss: infonce\n    params: {temperature: 0.1}\n"
        "    params_by_column:\n      Q: {temperature: -1}\n      A: {temperature: -2}\n"
    )
    with pytest.raises(
        UserError, match=r"own.yaml: ours: temperature must be a finite number > 0, got -2"
    ):
        load_table(str(path), check_values=True)


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


def test_a_joining_loss_has_values_that_it_takes(load) -> None:
    load("domains: {graph: {}}\nlosses: [infonce]\n")
    for wrong in (-1, float("inf")):
        with pytest.raises(UserError, match=f"temperature must be a finite number.*, got {wrong}"):
            load_table("my.yaml", losses=[LossSpec("adnce", {"temperature": wrong})])


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


def test_seeds_that_choose_confirm_nothing_whatever_is_selected() -> None:
    words = ("adnce-table5", [], "1000-1001", False)
    for selection in ("paper", "validation"):
        with pytest.raises(UserError, match=r"seeds \[1000, 1001\] choose the parameters"):
            plan.make_plan(*words, selection, Path("results"))


def test_a_sweep_file_has_no_built_in_name(tmp_path: Path) -> None:
    path = tmp_path / "smoke.yaml"
    path.write_text("domains: {graph: {}}\nlosses: [all]\n")
    with pytest.raises(UserError, match="there is a sweep named smoke already"):
        load_table(str(path))


def test_a_domain_may_have_no_data_set(load) -> None:
    table = load(
        "losses: [infonce]\ndomains: {graph: {datasets: []}, tabular: {datasets: [wine]}}\n"
    )
    assert list(table.columns) == ["wine"]


def test_a_name_of_any_length_is_read_once() -> None:
    start = process_time()
    assert with_files_beside("x" * 20_000, None) == "x" * 20_000
    assert process_time() - start < 1
