"""`import contrastbench as cb`: what it costs, runs, reads, and says of mistakes."""

import csv
import importlib.util
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import contrastbench as cb
import stub_domain
from contrastbench.benchmarks import report
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.report import comparison as comparisons
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.running import runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.losses import UserError, get_loss
from made_records import add

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
SMALL = {"epochs": 1, "limit": 60, "folds": 3}
SWEEP = "domains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce, adnce]\n"


def test_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(SWEEP)
    for seed in range(2):
        add(tmp_path, seed, 80.0)
        add(tmp_path, seed, 81.0 + seed, loss="adnce")
    code = (
        "import sys, contrastbench as cb; print('pydantic' in sys.modules)\n"
        "cb.__version__, cb.list_losses(), cb.records('.'), cb.table('my.yaml', results='.')\n"
        "cb.compare('my.yaml', results='.'); print('torch' in sys.modules)"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\nFalse\n"


def test_what_is_offered_is_there() -> None:
    assert set(dir(cb)) == set(cb.__all__)
    assert all(getattr(cb, name) for name in cb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lossses'"):
        cb.lossses  # noqa: B018


def test_a_run_gives_its_records_and_reads_what_is_finished(tmp_path: Path) -> None:
    once = cb.run(
        "graph", "adnce", seeds=(1, 2), params={"mu": 0.6}, recipe=SMALL, results=tmp_path
    )
    assert [(one["seed"], one["status"], one["params"]["mu"]) for one in once] == [
        (1, "ok", 0.6),
        (2, "ok", 0.6),
    ]
    assert once == cb.run(
        "graph", "adnce", seeds=[1, 2], params={"mu": 0.6}, recipe=SMALL, results=tmp_path
    )
    frame = cb.records(once)
    assert frame.equals(cb.records(tmp_path))
    assert list(frame["metrics.accuracy"]) == [one["metrics"]["accuracy"] for one in once]
    assert list(frame["score"]) == list(frame["metrics.accuracy"])
    assert list(frame["recipe.epochs"]) == [1, 1]


def test_each_option_of_a_run_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"results": tmp_path / "results", "data_root": tmp_path, "device": "cuda:1"}
    given |= {"threads": 2, "deterministic": False, "tf32": True, "compile": True}
    given |= {"log": ["csv"], "on_step": print, "on_epoch": repr}
    seen = list[Options]()
    monkeypatch.setattr(runner, "run_seeds", lambda *told: seen.append(told[2]) or [])
    assert cb.run("graph", "none", **given) == []
    of_commands_alone = {"export": None, "devices": 1}
    assert [vars(options) for options in seen] == [given | of_commands_alone]


def test_a_frame_has_a_row_for_each_record(tmp_path: Path) -> None:
    add(tmp_path, 0, 80.0, params={"temperature": 0.4}, details={"validation": 71.0})
    add(tmp_path, 1, 0.0, status="diverged", details={"error": "the loss is nan"})
    add(tmp_path, 1000, 99.0)
    frame = cb.records(tmp_path).set_index("seed")
    assert list(frame.index) == [1, 0] or list(frame.index) == [0, 1]
    assert (frame.score[0], frame["params.temperature"][0]) == (80.0, 0.4)
    assert frame.validation[0] == 71.0, "a search can be recomputed from a frame"
    assert frame.score.isna()[1]
    assert frame.error[1] == "the loss is nan"
    assert 1000 in list(cb.records(tmp_path, but=()).seed), "it chose parameters"
    assert len(cb.records([])) == 0


def test_a_frame_has_the_values_that_losses_learned(tmp_path: Path) -> None:
    learned = {"mine.temperature": 0.25, "proxies": {"shape": [6, 32]}}
    add(tmp_path, 0, 80.0, details={"learned": learned})
    add(tmp_path, 1, 80.0)
    frame = cb.records(tmp_path).set_index("seed")
    assert frame["learned.mine.temperature"][0] == 0.25
    assert frame["learned.proxies"][0] == {"shape": [6, 32]}
    assert frame["learned.mine.temperature"].isna()[1]


def test_tables_and_comparisons_are_what_the_command_line_says(tmp_path: Path) -> None:
    name = str(tmp_path / "my.yaml")
    Path(name).write_text(SWEEP)
    for seed in range(3):
        add(tmp_path, seed, 80.0 + seed)
        add(tmp_path, seed, 82.0 - seed, loss="adnce")
    shown = rows(render_table(resolve(load_table(name), None, tmp_path), "csv"))
    assert list(cb.table(name, results=tmp_path).ours_mean) == [
        float(r["ours_mean"]) for r in shown
    ]
    assert cb.table(name, results=tmp_path).data[0] == "0" * 12
    compared = rows(
        comparisons.render_comparison(resolve(load_table(name), None, tmp_path), "csv", "adnce")
    )
    frame = cb.compare(name, baseline="adnce", results=tmp_path)
    assert list(frame.p_t) == pytest.approx([float(row["p_t"]) for row in compared], rel=1e-5)
    assert list(frame.columns) == list(compared[0]), "the columns of the CSV"
    assert list(frame.seeds) == ["0 1 2"]
    assert frame.attrs["answer"] == " ".join(
        said(comparisons.compared(resolve(load_table(name), None, tmp_path), "adnce"))
    )
    assert "debiased" in list(cb.table(name, losses=["debiased"], results=tmp_path).method)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0.5}, r"seeds must be whole numbers, got 0\.5"),
        ({"threads": 0}, "threads must be a whole number from 1 to 1024, got 0"),
        ({"loss": get_loss("infonce")}, "the loss must be a string such as 'adnce', got InfoNCE"),
        ({"params": {"temperature": np.float32(-1)}}, "temperature must be a finite number > 0"),
        (
            {"params": {"temperature": Fraction(1, 2)}},
            r"temperature=Fraction\(1, 2\) is a Fraction",
        ),
        (
            {"params": {"temperature": 10**5000}},
            "params: temperature=a number of 16610 bits is too",
        ),
        ({"params": {None: 1}}, "params: the key None is no string"),
        ({"params": [1]}, r"params has values by key, got \[1\]"),
        ({"recipe": {"epochs": 10**400}}, "recipe: epochs=1000+[.]{3} is too large"),
        ({"seeds": 10**5000}, "seeds 'a number of 16610 bits'"),
        ({"seeds": None}, "seeds must be whole numbers, got None"),
        ({"threads": True}, "threads must be a whole number from 1 to 1024, got True"),
        ({"results": None}, "results must be the path of a folder, got None"),
        ({"results": 3}, "results must be the path of a folder, got 3"),
        ({"data_root": 3}, "data_root must be the path of a folder, got 3"),
    ],
)
def test_mistakes_are_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        cb.run(**{"domain": "graph", "loss": "adnce", **change})  # type: ignore[arg-type]
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("seeds", ["1,3", np.int64(3), range(2)])
def test_seeds_may_be_written_as_on_the_command_line(seeds: object, tmp_path: Path) -> None:
    found = cb.run("tabular", "none", seeds=seeds, tiny=True, results=tmp_path)  # type: ignore[arg-type]
    expected = {"1,3": [1, 3], "3": [3]}.get(str(seeds), [0, 1])
    assert [record["seed"] for record in found] == expected


def test_numbers_of_numpy_are_recorded_as_plain_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_domain.install(monkeypatch)
    params = {"temperature": np.float64(0.25)}
    recipe = {"epochs": np.int64(2), "lr": np.float32(0.5), "score_at": np.array([1])}
    options = {"seeds": np.arange(1), "threads": np.int64(1), "results": tmp_path}
    (record,) = cb.run("graph", "infonce", params=params, recipe=recipe, **options)  # type: ignore[arg-type]
    (path,) = tmp_path.glob("runs/*/*/*/*.json")
    assert record.items() <= json.loads(path.read_text()).items()
    assert record["params"] == {"temperature": 0.25}
    plain = [record["recipe"][key] for key in ("epochs", "lr", "score_at")]
    assert plain == [2, 0.5, [1]]


def test_a_frame_has_names_and_numbers_as_they_are(tmp_path: Path) -> None:
    """A CSV rounds numbers and escapes formulas for spreadsheets; a frame needs neither."""
    name = str(tmp_path / "my.yaml")
    losses = "losses: [{infonce: {}, name: =1+1}, {adnce: {}, name: third}]\n"
    Path(name).write_text("domains: {graph: {datasets: [MUTAG]}}\n" + losses)
    for seed, value in enumerate([80.0, 80.0, 81.0]):
        add(tmp_path, seed, value)
        add(tmp_path, seed, value, loss="adnce")
    frame = cb.table(name, results=tmp_path)
    assert list(frame.method) == ["=1+1", "third"]
    assert list(frame.ours_mean) == [241 / 3] * 2
    text = render_table(resolve(load_table(name), None, tmp_path), "csv")
    assert [row["method"] for row in rows(text)] == ["'=1+1", "third"]
    assert [row["ours_mean"] for row in rows(text)] == ["80.3333"] * 2
    compared = cb.compare(name, results=tmp_path)
    assert (compared.method[0], compared.against[0]) == ("third", "=1+1")


def test_no_folder_is_no_empty_frame(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="typo is no folder of results"):
        cb.records(tmp_path / "typo")


def test_records_of_the_first_release_make_a_frame_and_a_page(tmp_path: Path) -> None:
    first = ROOT / "tests/attack/releases/first.json"
    record = json.loads(first.read_text())
    path = store.record_path(tmp_path, record)
    path.parent.mkdir(parents=True)
    path.write_bytes(first.read_bytes())
    assert len(cb.records(tmp_path)) == 1
    assert "records: 1" in report.write_report([], tmp_path, tmp_path / "pages")


def test_without_pandas_its_line_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r'pip install "contrastbench\[tabular\]"'):
        cb.records(tmp_path)


def code_cells() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_ends_with_the_standing_of_an_own_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in code_cells():
        capsys.readouterr()
        exec(cell, names)
    assert capsys.readouterr().out.startswith("mine.py:Mine on single sets: 1 ")
    assert len(names["frame"]) == 6  # type: ignore[arg-type]
    assert list(names["compared"].method) == ["mine.py:Mine", "none", "adnce"]  # type: ignore[attr-defined]
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {"mine.py", "my.yaml", "quickstart"}


@pytest.mark.parametrize("in_clone", [True, False])
def test_the_notebook_installs_what_it_needs_where_it_is_opened_alone(
    in_clone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []
    (tmp_path / "docs").mkdir()
    if in_clone:
        (tmp_path / "CITATION.cff").touch()
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.setattr(subprocess, "run", lambda words, check: called.append(words))
    exec(code_cells()[0], {})
    assert called == [], "it is installed"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    exec(code_cells()[0], {})
    source = tmp_path if in_clone else "contrastbench"
    assert [words[1:] for words in called] == [
        ["-m", "pip", "install", "--quiet", f"{source}[graph,tabular]"]
    ]
