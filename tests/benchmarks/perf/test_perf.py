"""`bench perf`: what it prints; times are never asserted."""

import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

from allocations import Allocations
from contrastbench.benchmarks.cli import main
from contrastbench.benchmarks.perf import commands
from contrastbench.benchmarks.perf import image as perf_image
from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.benchmarks.perf import sentence as perf_sentence
from contrastbench.benchmarks.perf import tabular as perf_tabular
from contrastbench.losses import blocks
from contrastbench.losses.registry import OURS
from shadow import counting, shadow

SHADOW = shadow()  # before torch's first backward pass, which asks what devices there are


def test_a_time_is_printed_with_the_machine_and_the_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(perf_tabular, "STEPS", 1)
    result = CliRunner().invoke(main.app, ["perf", "tabular", "breast_cancer"])
    machine, empty, head, *_ = result.output.splitlines()
    assert re.search(r"CPU, \w+, \d+ cores; .*torch \d.*; commit ", machine)
    assert (empty, head[:2]) == ("", "| ")


def test_image_prints_one_line_for_each_kind_of_view_and_each_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"ROUNDS": 1, "STEPS": 1, "BATCH": 8, "WIDTHS": {8: (0.0625, 0.125)}}
    for name, value in sizes.items():
        monkeypatch.setattr(perf_image, name, value)
    lines = "\n".join(perf_image.report(["digits"], None)).splitlines()
    views, steps = lines[: lines.index("")], lines[lines.index("") + 1 :]
    assert [line.split(" | ")[1] for line in views[2:]] == ["none", "base", "hard"]
    widths = [line.split(" x ")[1].split()[0] for line in steps[2:]]
    assert widths == ["0.0625", "0.125"]
    for table in (views, steps):
        assert {line.count("|") for line in table} == {table[0].count("|")}


def test_sentence_prints_a_line_for_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_sentence, "DATASET", "graded")
    monkeypatch.setattr(perf_sentence, "ROUNDS", 1)
    # 300 sentences in a second: 600 in two, half of all
    monkeypatch.setattr(perf_sentence, "run_seconds", lambda work, device: 1.0)
    lines = "\n".join(perf_sentence.report(["tiny"], None)).splitlines()
    ways = ["float32", "bf16", perf_sentence.PEER]  # installed or not
    assert [line.split(" | ")[1] for line in lines[2:]] == ways
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    float32, bf16 = (line.split(" | ") for line in lines[2:4])
    assert float32[2] == "300 of 600"
    assert float32[6] == "0.00000 |"
    assert 0 < float(bf16[6].split()[0]) < 0.05


def test_tabular_times_each_kind_of_view_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a step is given is there, or it would be refused."""
    monkeypatch.setattr(perf_tabular, "STEPS", 1)
    with counting() as counts:
        lines = "\n".join(perf_tabular.report(["breast_cancer"], None, SHADOW)).splitlines()
    kinds = [line.split(" | ")[1] for line in lines[2:]]
    assert kinds == ["masking", "corruption", "masking+corruption"]
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert counts.launches > 300


def test_commands_take_more_than_python_alone(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RUNS", 1)
    code, out, err = bench("perf", "commands", "--", "--version")
    assert code == 0, err
    seconds = dict(line.rsplit(None, 1) for line in out.splitlines()[3:])
    assert list(seconds) == ["python -c pass", "import typer, pydantic", "bench --version"]


def test_a_command_that_fails_says_why(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RUNS", 1)
    code, out, err = bench("perf", "commands", "tabel")
    assert code == 0, err
    assert re.fullmatch("bench tabel +- bench: .*table.*", out.splitlines()[-1])


def test_commands_are_measured_on_the_records_that_ship_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = "from pathlib import Path; assert [*Path('results/runs').iterdir()]"
    assert commands.cpu_seconds(["-c", there]) > 0


def test_table_has_a_cell_for_every_loss_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = perf_losses.measured_entry("infonce", 16)
    assert re.fullmatch(r"\d+\.\d\dx \d+ MB", measured)
    monkeypatch.setattr(perf_losses, "measured_entry", lambda *words: f"{words[0]} {words[1]}")
    unit, head, *lines = perf_losses.report(["dcl_w", "jsd"], sizes=(16, 32))
    assert "1x is" in unit
    assert head == "| loss | 2N = 16 | 2N = 32 |\n| --- | ---: | ---: |"
    assert lines == [
        "| dcl_w | dcl_w 16 | dcl_w 32 |",
        "| dcl_w of lightly | dcl_w of lightly 16 | dcl_w of lightly 32 |",
        "| jsd | jsd 16 | jsd 32 |",
    ]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = CompletedProcess([], 1, "", "UserError: it is not installed: pip install lightly")
    monkeypatch.setattr(perf_losses.subprocess, "run", lambda *_, **__: missing)
    assert perf_losses.measured_entry("dcl_w of lightly", 16) == "not installed"


@pytest.mark.parametrize("name", OURS)
def test_no_loss_holds_all_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is linear: no tensor that a step makes has as many numbers as all scores."""
    monkeypatch.setattr(blocks, "CPU_WHOLE", 0)
    monkeypatch.setattr(blocks, "CPU_BLOCK", 2**14)
    monkeypatch.setattr(blocks, "CPU_TILE", 2**6)
    with Allocations() as made:
        perf_losses.train_step(name, 512)()
    assert made.largest < 4 * 512**2 / 2


def test_a_cell_over_its_memory_says_so() -> None:
    assert perf_losses.measured_entry("mean_variance", 4096, gigabytes=0.05) == "over 0.05 GB"
