"""Published tables: complete, runnable, rendered from records alone."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from statistics import fmean

import pytest

from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.report.latex import VALUES
from contrastbench.benchmarks.report.table_pages import write_file
from contrastbench.benchmarks.report.tables import render_table
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.benchmarks.tables.entries import entries
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.schema import Column, PublishedRow, PublishedTable, Row
from contrastbench.benchmarks.tables.table import Selection, Table
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.spec import LossSpec
from made_records import made, small_table

SMALL = small_table(
    protocol={"facts": [{"from": "paper (Table 1)", "evaluation": {"seeds": 3}}]},
    columns={
        "A": {"dataset": "MUTAG"},
        "B": {"dataset": "DD", "recipe": {"augmentation": "random3"}},
    },
    average="AVG",
    rows=[
        {"name": "quoted", "paper": {"A": [80.0, 1.0], "AVG": [70.0]}},
        {
            "name": "ours",
            "loss": "infonce",
            "params": {"temperature": 0.2},
            "paper": {"A": [85.0, 0.5]},
        },
    ],
)


def add(results: Path, column: str, seed: int, accuracy: float, **change: object) -> None:
    work = SMALL.places[next(row for row in SMALL.rows if row.loss).name, column].work
    made(results, work, seed, **{"metrics": {"accuracy": accuracy}, **change})


def shown(results: Path, table: Table = SMALL, format_: str = "md") -> str:
    return render_table(resolve(table, None, results), format_)


REPORT_THE_BEST_EPOCH = {  # linear.py of AttentionNCE, main_lincls.py of RényiCL
    "attentionnce-table1": "",
    "attentionnce-table3": "",
    "attentionnce-table4": "",
    "renyicl-table1": "",
    "renyicl-table4": " in ImageNet",
    "renyicl-table5": " in ImageNet-100 Base, ImageNet-100 Hard",
    "renyicl-table7": "",
    "renyicl-table8": "",
    "renyicl-table9": " in ImageNet-100",
    "renyicl-table13": " in IN",
}


@pytest.mark.usefixtures("moment")
@pytest.mark.parametrize("name", table_names())
def test_every_table_can_be_run_and_rendered(name: str, tmp_path: Path) -> None:
    table = load_table(name)
    for place in table.places.values():
        work, row = place.work, place.row
        assert work.dataset in declaration(work.domain).datasets
        assert work.full_recipe.protocol
        for key, values in {**row.grid, **row.grid_by_column.get(place.setup.column, {})}.items():
            for value in values:
                LossSpec(row.loss or "none", {**row.params, key: value}).check()
    losses = {place.work.loss.label: place.work.loss for place in table.places.values()}
    for loss in losses.values():
        full = loss.complete.params
        assert loss.name == "none" or get_loss(loss.name, **loss.params).params == full
    resolved = resolve(table, None, tmp_path)
    text = render_table(resolved, "md")
    assert ("missing" in text) == bool(table.places)
    lines = render_table(resolved, "csv").splitlines()
    assert len(lines) == 1 + len(table.rows) * (len(table.columns) + (table.average is not None))
    assert sum(",no," in line for line in lines) >= len(table.places)
    latex = render_table(resolved, "latex")
    check_latex(latex, table)
    where = REPORT_THE_BEST_EPOCH.get(name, "nowhere")
    said = f"epoch{where} is chosen on the test set, as the released code does."
    for one in (text, latex):
        assert (said in one) == ("chosen on the test set" in one) == (name in REPORT_THE_BEST_EPOCH)


def check_latex(text: str, table: Table) -> None:
    """A row of the table is a row of LaTeX with all its places, and nothing is left unescaped."""
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert sum(not line.startswith(r"\quad") for line in lines) == 1 + len(table.rows)
    width = 1 + len(table.columns) + (table.average is not None)
    assert {len(re.split(r"(?<!\\)&", line)) for line in lines} == {width}
    assert f"{{l{'c' * (width - 1)}}}" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    bare = re.sub(
        r"\\[%&#_{}]|\\textbackslash\{\}|\\tau(_\d|\^\*)",
        "",
        re.sub(r"(?m)^% .*\n", "", text).replace("{!}{%\n", "{!}{").replace("}%\n", "}\n"),
    )
    assert not re.search(r"[%#_~^±]", bare)
    assert bare.count("{") == bare.count("}")


def test_renyicl_scores_at_the_size_of_its_crops() -> None:
    """Appendix B.4: "random resized crop with a size of 32 [...] for both training and evaluation".

    CIFAR's images have that size; STL-10's 96 pixels are resized to it.
    """
    table = load_table("renyicl-table10")
    for row in table.rows:
        for column in table.columns:
            recipe = table.places[row.name, column].work.full_recipe
            assert (recipe.size, recipe.test_size) == (32, 32 if column == "STL-10" else None)


def test_the_best_epoch_on_the_test_set_is_no_result_of_a_validation_selection() -> None:
    best = SMALL.model_copy(update={"metric": "accuracy_best_epoch_on_test"})
    assert best.metric_of("A") == "accuracy_best_epoch_on_test"
    chosen = Resolved(best, Selection.VALIDATION, Path(), [])
    assert chosen.metrics["A"] == "accuracy"
    assert not chosen.on_test


def means(name: str) -> dict[str, dict[str, float]]:
    return {
        row.name: {column: value[0] for column, value in row.paper.items()}
        for row in load_table(name).rows
    }


MISPRINTED = {  # which the tables' notes say
    ("InfoGraph", "COLLAB"): 70.65,
    ("ADNCE-RoBERTa-base", "Avg."): 77.18,
}


@pytest.mark.parametrize(
    ("name", "average", "off"),
    [
        ("adnce-table10", "AVG.", 0.0051),
        ("dasl-table5", "Aver.", 0.0051),
        ("adnce-table4", "Avg.", 0.01),  # of rounded values, rounded
    ],
)
def test_published_values_average_to_the_published_average(
    name: str, average: str, off: float
) -> None:
    for row, values in means(name).items():
        meant = {column: MISPRINTED.get((row, column), x) for column, x in values.items()}
        printed = meant.pop(average, None)
        if printed is not None:
            assert fmean(meant.values()) == pytest.approx(printed, abs=off), row


def test_printed_relative_improvements_follow() -> None:
    table = means("adnce-table1")  # which says that the fourth is printed as 1.0
    printed = {
        "DCL (tau0)": (-0.2, -4.2),
        "DCL (tau*)": (-0.1, 0.3),
        "HCL (tau0)": (-0.0, -0.5),
        "HCL (tau*)": (-0.0, -0.5),
    }
    for name, gains in printed.items():
        for column, gain in zip(("CIFAR10", "STL10"), gains, strict=True):
            ratio = table[name][column] / table["SimCLR (tau*)"][column] - 1
            assert 100 * ratio == pytest.approx(gain, abs=0.1), (name, column)


def test_printed_differences_follow() -> None:
    one, four = means("attentionnce-table1"), means("attentionnce-table4")
    differences = [
        one["AttentionNCE"][column] - one["SimCLR"][column]
        for column in load_table("attentionnce-table1").columns
    ]
    assert differences == pytest.approx(
        [3.2, 2.0, 8.6, 9.2, 5.8, 3.8, 5.0, 5.2]
    )  # the paper prints 7.2 for the fourth
    differences = [
        value - four["SimCLR (supervised)"][c]
        for c, value in four["AttentionNCE (supervised)"].items()
    ]
    assert differences == pytest.approx([0.8, 0.6, 8.7, 4.8, 6.2, 5.8])
    for name, gains in (
        ("renyicl-table7", [2.1, 2.0, 3.0, 2.7]),
        ("renyicl-table8", [1.6, 3.9, 4.9]),
    ):
        assert [row["Hard"] - row["Base"] for row in means(name).values()] == pytest.approx(
            gains
        ), name
    nine = means("renyicl-table9")
    gains = {"CPC": [-1.1, -0.5, -0.5], "MLCPC": [-1.2, -0.6, -0.1], "RMLCPC": [0.9, 3.1, 1.6]}
    for name, printed in gains.items():
        found = [
            value - nine[name][column] for column, value in nine[f"{name} + noisy crop"].items()
        ]
        assert found == pytest.approx(printed)


def test_a_column_without_a_dataset_is_quoted(tmp_path: Path) -> None:
    columns = {**SMALL.columns, "C": Column()}
    rows = [*SMALL.rows[:1], SMALL.rows[1].model_copy(update={"paper": {"C": [60.0]}})]
    quoted = SMALL.model_copy(update={"columns": columns, "rows": rows})
    assert "| ours | - / missing | - / missing | *60.0* | - / missing |" in shown(tmp_path, quoted)


def test_a_mean_says_its_seeds_and_its_difference(tmp_path: Path) -> None:
    for seed, accuracy in enumerate((86.0, 88.0)):
        add(tmp_path, "A", seed, accuracy)
    text = shown(tmp_path)
    assert "| ours | 85.0 ± 0.5 / 87.0 ± 1.4 (2 of 3) / +2.0 | - / missing | - / missing |" in text
    assert "| quoted | *80.0 ± 1.0* | - | *70.0* |" in text
    lines = shown(tmp_path, SMALL, "csv").splitlines()
    assert (
        "small,paper,ours,A,infonce,no,85.0000,0.5000,3,87.0000,1.4142,2,2.0000,000000000000,"
        ",too wide to tell"
    ) in lines
    assert "small,paper,quoted,A,,yes,80.0000,1.0000,3,,,,,,," in lines
    values = json.loads(shown(tmp_path, SMALL, "json"))
    assert [[*one] for one in values] == [lines[0].split(",")] * (len(lines) - 1)
    (ours,) = [one for one in values if (one["method"], one["column"]) == ("ours", "A")]
    assert (ours["ours_mean"], ours["ours_std"]) == (87.0, pytest.approx(2**0.5))
    add(tmp_path, "A", 2, 87.0)
    assert "(3) / +2.0 |" in shown(tmp_path), "as many as printed"


def test_a_place_that_failed_is_not_missing(tmp_path: Path) -> None:
    for seed, status in ((0, "diverged"), (1, "diverged"), (1000, "diverged"), (2, "oom")):
        add(tmp_path, "A", seed, 0.0, status=status)
    text = shown(tmp_path)
    assert "| ours | 85.0 ± 0.5 / diverged (2 of 3), oom (1 of 3) | - / missing |" in text
    assert text.count("failed on A") == 1, "the mean over columns"
    assert '0.5000,3,,,,,,"diverged (2 of 3), oom (1 of 3)"' in shown(tmp_path, SMALL, "csv")
    add(tmp_path, "A", 2, 86.0)
    assert "/ 86.0 (1 of 3), diverged (2 of 3) / +1.0 |" in shown(tmp_path)


def test_one_seed_has_no_deviation_and_the_average_waits_for_all_columns(tmp_path: Path) -> None:
    add(tmp_path, "A", 0, 86.0)
    assert "/ 86.0 (1 of 3) / +1.0 | - / missing | - / missing |" in shown(tmp_path)
    add(tmp_path, "B", 0, 76.0)
    assert "| - / 76.0 (1) | - / 81.0 (1) |" in shown(tmp_path)
    for seed in (1, 2):
        add(tmp_path, "A", seed, 86.0)
    assert "(3) / +1.0 | - / 76.0 (1) | - / 81.0 (1) |" in shown(tmp_path)  # of its columns


@pytest.mark.parametrize(
    "change",
    [
        {"status": "diverged"},
        {"params": {"temperature": 0.3}},
        {"recipe": make_recipe("graph", {"epochs": 1}).model_dump(mode="json")},
        {"protocol": "another/1"},
        {"loss": "adnce"},
        {"dataset": "DD"},
    ],
)
def test_only_records_of_exactly_this_cell_count(tmp_path: Path, change: dict) -> None:
    add(tmp_path, "A", 0, 86.0, **change)
    assert [entry.ours for entry in list(entries(resolve(SMALL, None, tmp_path)))[1]] == [
        None,
        None,
        None,
    ]


def test_another_metric_is_shown_where_all_records_have_it_beside_no_published_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(tmp_path, "A", 0, 86.0, metrics={"accuracy": 86.0, "auroc": 91.0})
    add(tmp_path, "A", 1, 86.0, metrics={"accuracy": 86.0, "auroc": 93.0})
    add(tmp_path, "B", 0, 76.0)
    shown = resolve(SMALL, None, tmp_path, "auroc")
    assert shown.table.title == "t, by auroc"
    assert "| ours | 92.0 ± 1.4 (2) |" in render_table(shown, "md")
    assert "85.0" not in render_table(shown, "md")
    assert "left out, since not all records have auroc: B\n" in capsys.readouterr().err
    with pytest.raises(UserError, match="unknown metric 'auc': did you mean 'auroc'"):
        resolve(SMALL, None, tmp_path, "auc")


def test_by_another_metric_columns_keep_their_order(tmp_path: Path) -> None:
    columns = {"A": {"dataset": "MUTAG"}, "B": {"dataset": "DD"}}
    table = small_table(
        columns=columns, rows=[{"name": n, "loss": n} for n in ("infonce", "adnce")]
    )
    for row, column in (("infonce", "B"), ("adnce", "A")):
        made(tmp_path, table.places[row, column].work, 0, metrics={"accuracy": 8.0, "auroc": 9.0})
    assert [*resolve(table, None, tmp_path, "auroc").table.columns] == ["A", "B"]


def test_columns_of_several_epochs_are_one_training() -> None:
    """ADNCE's main.py trains once and saves its model every 100 epochs."""
    for name, trainings in (("adnce-table3", 4 * 3), ("attentionnce-table4", 2 * 3)):
        places = plan.runnable_places(load_table(name))
        assert len({place.work.key for place in places}) == trainings
    table = load_table("adnce-table3")
    place = plan.runnable_places(table, ["column=STL10 200", "loss=adnce"])[0]
    recipe = place.work.full_recipe
    assert (recipe.epochs, recipe.schedule, recipe.score_at) == (400, "constant", (100, 200, 300))
    metrics = [table.metric_of(f"STL10 {epochs}") for epochs in (100, 200, 300, 400)]
    assert metrics == ["accuracy@100", "accuracy@200", "accuracy@300", "accuracy"]


def test_a_place_reads_the_score_of_its_epoch(tmp_path: Path) -> None:
    columns = {
        "after 10": {"dataset": "MUTAG", "metric": "accuracy@10"},
        "after 20": {"dataset": "MUTAG"},
    }
    table = SMALL.model_copy(
        update={
            "columns": {name: Column(**about) for name, about in columns.items()},
            "recipe": {"epochs": 20, "score_at": [10]},
            "average": None,
        }
    )
    row = table.rows[1]
    work = table.places[row.name, "after 10"].work
    assert work == table.places[row.name, "after 20"].work
    made(tmp_path, work, 0, metrics={"accuracy": 82.0, "accuracy@10": 81.0})
    (_, (first, last)) = entries(resolve(table, None, tmp_path))
    assert (first.ours.mean, last.ours.mean) == (81.0, 82.0)


def test_a_record_that_was_scored_more_often_counts_and_one_less_often_does_not() -> None:
    def work(*epochs: int) -> Experiment:
        return Experiment("graph", "MUTAG", LossSpec("infonce"), {"score_at": epochs})

    def matches(wanted: Experiment, found: Experiment) -> bool:
        cell = Cell(found, 0, "0" * 64, {})
        return wanted.matches({**cell.identity, "key": cell.key})

    assert matches(work(), work(5, 10))
    assert matches(work(10), work(5, 10))
    assert not matches(work(10), work())
    assert not matches(work(10), work(5))


def test_a_record_older_than_a_recipe_key_still_counts_once(tmp_path: Path) -> None:
    old = make_recipe("graph", {}).model_dump(mode="json")
    del old["schedule"]
    add(tmp_path, "A", 0, 86.0, recipe=old)
    assert "/ 86.0 (1 of 3) /" in shown(tmp_path)
    add(tmp_path, "A", 0, 86.0)
    assert "/ 86.0 (1 of 3) /" in shown(tmp_path), "one value a seed"


RESULTS = Path(__file__).parents[3] / "results"


def test_a_table_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .* \(No such file or directory\): make"):
        write_file(tmp_path / "nowhere" / "a.md", "new")


DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
%s\end{document}
"""


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex on this machine")
@pytest.mark.usefixtures("moment")
def test_latex_compiles(tmp_path: Path) -> None:
    odd = SMALL.rows[1].model_copy(
        update={"name": r"50 % of a_b & c #1 $x$ {y} \z ~^ <a> [b] |d| τ* \"é\" -0.5"}
    )
    every = [load_table(name) for name in table_names()] + [
        SMALL.model_copy(update={"name": "100% ü", "rows": [odd, *SMALL.rows]})
    ]
    text = "\n\\clearpage\n".join(
        render_table(resolved, "latex", values)
        for resolved in (resolve(one, None, RESULTS if one.quotes else tmp_path) for one in every)
        for values in VALUES
        if resolved.table.quotes or values != "theirs"
    )
    (tmp_path / "all.tex").write_text(DOCUMENT % text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000


def test_latex_marks_the_best_and_the_second_of_all_rows(tmp_path: Path) -> None:
    row = SMALL.rows[-1].model_copy(update={"name": "other", "loss": "adnce", "params": {}})
    raw = row.model_copy(update={"name": "raw", "loss": "none"})
    table = SMALL.model_copy(update={"rows": [*SMALL.rows, row, raw]})
    made(tmp_path, table.places[row.name, "A"].work, 0, metrics={"accuracy": 99.0})
    made(tmp_path, table.places[raw.name, "A"].work, 0, metrics={"accuracy": 99.5})
    resolved = resolve(table, None, tmp_path)
    printed = sorted({one.paper["A"][0] for one in SMALL.rows if "A" in one.paper}, reverse=True)
    text = render_table(resolved, "latex")
    assert r"\quad ours & \textbf{99.0 (1" in text
    assert rf"\underline{{{printed[0]:.1f}" in text
    assert "ours & 99.5 (1" in text, "a row without training is no contestant"
    theirs = render_table(resolved, "latex", "theirs")
    assert rf"\textbf{{{printed[0]:.1f}" in theirs
    assert "99.0" not in theirs
    assert r"other & \textbf{99.0 (1" in render_table(resolved, "latex", "ours")
    unprinted = resolve(table.but(rows=[raw.but(paper={})]), None, tmp_path)
    with pytest.raises(UserError, match="--values theirs"):
        render_table(unprinted, "latex", "theirs")
    with pytest.raises(UserError, match="--values ours is of LaTeX: add --format latex"):
        render_table(resolved, "md", "ours")


def test_names_are_neither_formulas_nor_html(tmp_path: Path) -> None:
    columns = {"@A": SMALL.columns["A"], "<b>B": SMALL.columns["B"]}
    rows = [Row(name=name, loss="infonce") for name in ("=1+1", "<script>", "[x](http://y)")]
    about = {"name": "-odd", "columns": columns, "rows": rows, "source": "<i>"}
    odd = SMALL.model_copy(update=about)
    cells = [line.split(",") for line in shown(tmp_path, odd, "csv").splitlines()]
    assert {line[0] for line in cells[1:]} == {"'-odd"}
    assert {line[2] for line in cells[1:]} == {"'=1+1", "<script>", "[x](http://y)"}
    assert {line[3] for line in cells[1:]} >= {"'@A", "<b>B"}
    page = shown(tmp_path, odd)
    assert not [mark for mark in ("<script", "<b", "](", "<i") if mark in page]
    assert "&lt;script>" in page


def test_odd_names_break_no_table(tmp_path: Path) -> None:
    columns = {"A|B": SMALL.columns["A"], "C\nD": SMALL.columns["B"]}
    odd = SMALL.model_copy(
        update={"name": "100% a_b", "columns": columns, "rows": [Row(name="one\n\ntwo|three")]}
    )
    lines = [line for line in shown(tmp_path, odd).splitlines() if line.startswith("|")]
    assert lines == [
        "| Method | A&#124;B | C D | AVG |",
        "| --- | --- | --- | --- |",
        "| one  two&#124;three | - | - | - |",
    ]
    latex = shown(tmp_path, odd, "latex")
    assert r"\label{tab:100--a_b}" in latex.splitlines()
    assert r"one  two$|$three & - & - & - \\" in latex.splitlines()


OWN = "title: x\nsource: s\ndecimals: 0\ndomain: graph\ncolumns: {A: {}}\n"
OF_TABLES = Table.model_fields.keys() - PublishedTable.model_fields.keys()
OF_ROWS = Row.model_fields.keys() - PublishedRow.model_fields.keys()
OF_PROGRAM = [  # keys that only the program sets
    *((key, f"{key}: 7\nrows: [{{name: a}}]\n") for key in OF_TABLES),
    *((key, f"rows: [{{name: a, {key}: 7}}]\n") for key in OF_ROWS),
]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('title: "x\\a"\n', ":1: 'x\\x07' has a control character: remove it"),
        ('title: "x\\u202e2"\n', ":1: 'x\\u202e2' has a control character: remove it"),
        (f"{OWN}rows: []\n", ":6: rows: list should have at least 1 item"),
        (f"{OWN}rows: [{{name: a}}]\n".replace("0", "9" * 9), ":3: decimals=999999999: input"),
        *((OWN + rest, f":6: unknown key {key!r}: ") for key, rest in sorted(OF_PROGRAM)),
    ],
)
def test_a_wrong_file_is_named_with_the_line(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load_table(str(tmp_path / "bad.yaml"))
    assert str(error.value).startswith(f"{tmp_path / 'bad.yaml'}{what}")


def test_published_values_stand_as_they_are_printed(tmp_path: Path) -> None:
    """RényiCL's Table 14: means with one digit, deviations with two."""
    assert "71.6 ± 0.36" in shown(tmp_path, load_table("renyicl-table14"))
    assert not re.search(r"\b74\.40\b", shown(tmp_path, load_table("adnce-table5")))
    assert "| *87.67* |" in shown(tmp_path, load_table("renyicl-table6"))


@pytest.mark.parametrize("name", ["renyicl-table5", "renyicl-table14"])
def test_renyicls_tables_pretrain_on_both_parts_and_probe_plainly(name: str) -> None:
    """Appendix B.5 rescales nothing; i-Mix's splits have 15,120 and 100,000 training rows."""
    table = load_table(name)
    for column, about in table.columns.items():
        if table.domain_of(column) == "tabular":
            recipe = table.places[table.rows[0].name, column].work.full_recipe
            assert recipe.pretraining == "train+validation"
            expected = "plain" if about.dataset == "CoverType" else "pseudo_inverse"
            assert recipe.probe == expected
