"""Stops of a first day: each has a way on."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps.plan import make_plan
from made_records import made
from wrong_losses import PAGE, mistake

OWN = "class Base: pass\nclass Mine(Base): pass\nraise RuntimeError('it is not run')\n"
SWEEP = """seeds: 0-1
domains:
  graph: {datasets: [motifs]}
  sentence: {datasets: [graded]}
losses: [infonce, none]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN, "my.py names no class: did you mean my.py:Base or my.py:Mine?"),
        ("x = 1\n", "my.py has no class: write the loss as one, and give my.py:CLASS"),
        ("class\n", "cannot read my.py (SyntaxError: invalid syntax"),
        (None, "no file my.py: give --loss as path/to/file.py:Class"),
    ],
)
@pytest.mark.parametrize("words", [["check-loss"], ["run", "--domain", "graph", "--loss"]])
def test_a_file_without_its_class(bench, text: str | None, said: str, words: list[str]) -> None:
    if text is not None:
        Path("my.py").write_text(text)
    for name in ("my.py", "infonce + my.py"):
        code, out, err = bench(*words, name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


@pytest.mark.usefixtures("offline")
def test_embedded_sets_need_no_download(bench) -> None:
    Path("my.yaml").write_text(SWEEP)
    code, out, _ = bench("data", "fetch", "my.yaml", "--data-root", "root")
    assert (code, out.splitlines()) == (0, ["motifs: embedded", "graded: embedded"])
    Path("my.yaml").write_text(SWEEP.replace("graded", "sts"))
    code, out, _ = bench("data", "fetch", "my.yaml", "--data-root", "root")
    assert (code, "wiki1m" in out) == (1, True)


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
