"""Odd names, empty words, narrow streams, and other stops of a first day."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import contrastbench as cb
from contrastbench.benchmarks.api.cells import run
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.errors import UserError
from damaged import full_disk
from made_records import made
from wrong_losses import PAGE, mistake

Bench = Callable[..., tuple[int, str, str]]
NAME = "=a\x1b]0;owned\a\x9b2J\u202e\x7f\n+b"  # a title, a cleared screen, a turned line, a new one
IN_YAML = "=a\n+b"  # a table's file may not have the others
FORMULA = "=a+b"  # nor a record what breaks its line
QUICK = {"limit": 100, "batch_size": 16, "probe": "pseudo_inverse", "widths": [8, 8]}
SHOWN = repr(NAME)[1:-1]


def harmless(bench: Bench, *words: str) -> tuple[int, str, str]:
    """Run a command, which prints nothing that a terminal would follow."""
    code, out, err = bench(*words)
    for text in (out, err):
        assert all(letter.isprintable() for letter in text.replace("\n", "")), (words, text)
        assert "csv" in words or "\n+b" not in text, (words, text)
    return code, out, err


def table(path: Path) -> str:
    """Write a table of two classes and a constant column, whose names are hostile."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["x", f"c{NAME}", f"t{FORMULA}"]] + [[3 * k, 1, f"{k % 2}{NAME}"] for k in range(200)]
        )
    return f"csv:{path.name}"


def test_a_run_shows_names(bench: Bench, tmp_path: Path) -> None:
    words = ["run", "--domain", "tabular", "--loss", "none", "--tiny", "--target", f"t{FORMULA}"]
    words += ["--recipe", "probe=pseudo_inverse", "--dataset", table(tmp_path / f"{FORMULA}.csv")]
    code, out, err = harmless(bench, *words)
    assert code == 0
    assert f"csv:{FORMULA}.csv" in out
    assert f"constant columns: c{SHOWN}" in err
    code, out, err = harmless(bench, *words, "--json")
    record = json.loads(out)
    assert record["dataset"] == f"csv:{FORMULA}.csv", "records hold this name as it is"
    assert record["details"]["data"] == {"constant columns": [f"c{SHOWN}"]}
    for flag in ("--domain", "--dataset", "--loss", "--target", "--set", "--recipe"):
        assert harmless(bench, *changed(words, flag, NAME))[0] == 2
    assert "class 0 has 1 of 5 rows" in harmless(bench, *changed(words, "--target", "x"))[2]


def changed(words: list[str], flag: str, value: str) -> list[str]:
    if flag not in words:
        return [*words, flag, value]
    at = words.index(flag) + 1
    return [*words[:at], value, *words[at + 1 :]]


@pytest.mark.parametrize("name", [NAME, "a\nb", "a\udcff", "a\u202eb"])
def test_names_that_no_record_can_hold_are_refused_before_a_training(
    name: str, bench: Bench, tmp_path: Path
) -> None:
    """A file of that name may be there: what it is named must stand in a record."""
    words = ["run", "--domain", "tabular", "--loss", "none", "--tiny", "--recipe", "preset=small"]
    path = tmp_path / f"{name}.csv"
    for mine in (["--dataset", table(path)], ["--dataset", "csv:a.csv", "--target", name]):
        code, out, err = harmless(bench, *words, *mine)
        assert (code, out) == (2, "")
        assert "(a number in bounds, or a text of one line): rename or change it" in err
    with pytest.raises(UserError, match="or a text of one line"):
        run("tabular", "none", dataset=f"csv:{name}.csv", results=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def sweep_file(path: Path) -> str:
    """Write a sweep of a data set whose name is hostile, as the file's and the column's are."""
    recipe = {"epochs": 1, "target": f"t{FORMULA}", **QUICK}
    sets = {"tabular": {"datasets": [f"csv:{FORMULA}.csv"], "recipe": recipe}}
    losses = ["none", {"infonce": {"temperature": 0.5}}]
    path.write_text(yaml.safe_dump({"title": IN_YAML, "domains": sets, "losses": losses}))
    return path.name


@pytest.mark.parametrize("finished", [False, True])
def test_plans_and_tables_show_names(finished: bool, bench: Bench, tmp_path: Path) -> None:
    file = sweep_file(tmp_path / f"{IN_YAML}.yaml")
    data = table(tmp_path / f"{FORMULA}.csv")
    recipe = {"epochs": 1, "target": f"t{FORMULA}", **QUICK}
    for loss, seed in [("none", 0), ("none", 1), ("infonce", 0), ("infonce", 1)] * finished:
        params = {"temperature": 0.5} if loss == "infonce" else {}
        run("tabular", loss, data, seeds=[seed], params=params, recipe=recipe)
    seeds = ("--seeds", "0-1")
    assert FORMULA in harmless(bench, "plan", file, *seeds)[1]
    for words in (["audit", file], ["list", "tables"]):
        harmless(bench, *words)
    code, _, err = harmless(bench, "sweep", file, "--slurm", "time=60")
    assert (code, "has a character that sbatch cannot read" in err) == (2, True)
    shown = {"table": ("md", "csv", "latex"), "compare": ("md", "csv")}
    for command, form in ((command, form) for command, forms in shown.items() for form in forms):
        code, out, err = harmless(bench, command, file, "--format", form)
        assert (code == 0) == (finished or command == "table"), err
        cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
        assert form != "csv" or not [c for c in cells if c.startswith(("=", "+", "@"))]


MINE = """\
from contrastbench.losses.library.infonce import InfoNCE

class Mine(InfoNCE): ...
"""
RUN = ["run", "--domain", "graph", "--dataset", "motifs", "--loss", "none"]
ONE_SET = "seeds: 0-1\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce]\n"


def test_an_export_that_fails_costs_no_record(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrastbench.domains.graph.domain.GraphDomain.export", full_disk)
    code, out, err = bench(*RUN, "--tiny", "--export", "new")
    assert (code, "accuracy" in out) == (0, True)
    assert "--export new failed (" in err
    assert "the record is kept, the model is not" in err


def test_a_path_with_parentheses_joins_a_sweep(bench, tmp_path: Path) -> None:
    (tmp_path / "a (1)").mkdir()
    (tmp_path / "a (1)" / "mine.py").write_text(MINE)
    (tmp_path / "s.yaml").write_text(ONE_SET)
    code, out, err = bench("plan", "s.yaml", "--loss", "a (1)/mine.py:Mine(temperature=0.2)")
    assert (code, "a (1)/mine.py:Mine" in out + err) == (0, True)


def test_python_takes_the_data_of_the_environment_and_one_loss(
    bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRASTBENCH_DATA", "no folder")
    with pytest.raises(UserError, match="no folder"):
        cb.run("graph", "none", tiny=True)
    with pytest.raises(UserError, match="dataset must be a name"):
        cb.run("graph", "none", 3)
    (tmp_path / "s.yaml").write_text(ONE_SET)
    assert {*cb.table("s.yaml", losses="adnce")["method"]} == {"infonce", "adnce"}


SWEEP = """seeds: 0-1
domains:
  graph: {datasets: [motifs]}
  sentence: {datasets: [graded]}
losses: [infonce, none]
"""


def test_a_table_says_that_smoke_tests_are_left_out(bench) -> None:
    Path("my.yaml").write_text(SWEEP)
    none = bench("table", "my.yaml")[2]
    plan = make_plan("my.yaml", ["domain=graph"], None, True, None, Path("results"))
    for task in plan.tasks():
        made(Path("results"), task.experiment, task.seed)
    code, out, err = bench("table", "my.yaml")
    assert (code, "50.0" in out) == (0, False)
    note = "records of --tiny left out, as a smoke test fills no table: 4\n"
    assert err == note + none
    code, out, err = bench("compare", "my.yaml")
    assert (code, out, err.startswith(note), err.count("\n")) == (2, "", True, 2)


def test_the_page_shows_the_output_of_a_wrong_loss(bench) -> None:
    formula = f"    def terms(self, scores):\n        {mistake('HolesInMean')[1]}\n"
    head = "from contrastbench.losses import ScoreLoss\n\n\nclass Mine(ScoreLoss):\n"
    Path("mine.py").write_text(head + formula)
    code, out, err = bench("check-loss", "mine.py:Mine")
    assert (code, err) == (1, "")
    assert f"```\n{out}```\n" in PAGE.read_text(encoding="utf-8")
