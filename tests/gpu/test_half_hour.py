"""The script for half an hour with a GPU: its parts, by commands that only note them."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import accepted
from contrastbench.benchmarks.cli.arguments import experiment_of_options, parse_pairs
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.losses import UserError
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import LossSpec
from made_records import made

SCRIPT = Path(__file__).with_name("half_hour.sh")
PARTS = ["doctor", "check", "tests", "perf-losses", "perf-graph", "perf-image", "perf-tabular"]
TRAININGS = ["resnet18-infonce", "resnet18-adnce", "table4-bert", "table12-adnce"]
SUITE = [*(f"suite-seed-{seed}" for seed in range(5)), "suite-compare", "suite-accepted"]
NOTES = '#!/bin/sh\necho "${{0##*/}} $*" >> {log}\necho said\n[ "$2" != graph ] || exit 3\n'


Done = subprocess.CompletedProcess[str]


def run(folder: Path, notes: str = NOTES, **environment: str) -> tuple[Done, list[str]]:
    """Run the script into `out`, with commands that only note their words; return these too."""
    log, tools = folder / "log", folder / "tools"
    tools.mkdir()
    for name in ("bench", "python"):
        (tools / name).write_text(notes.format(log=log))
        (tools / name).chmod(0o755)
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = [str(SCRIPT), str(folder / "out"), "folder:here"]
    done = subprocess.run(command, env=path | environment, capture_output=True, text=True)
    return done, log.read_text().splitlines()


@pytest.mark.parametrize("tiny", [True, False])
def test_every_part_is_run_and_one_that_fails_stops_none(tiny: bool, tmp_path: Path) -> None:
    size = {"TINY": "1"} if tiny else {"EPOCHS": "7"}
    done, asked = run(tmp_path, DEVICE="cuda:1", **size)
    summary = (tmp_path / "out/summary.txt").read_text()
    assert (done.returncode, summary) == (0, done.stdout)
    names = [line.split(":")[0] for line in summary.splitlines()]
    trained = [name for name in TRAININGS if not (tiny and "bert" in name)]
    assert names == PARTS + ([] if tiny else ["perf-sentence"]) + trained + [
        name for name in SUITE if not (tiny and "compare" in name)
    ]
    assert "perf-graph: exit code 3 after" in summary
    assert (tmp_path / "out/check.txt").read_text() == "said\n"
    assert len(asked) == len(names)
    no_device = ("doctor", "pytest", "compare", "accepted")
    assert all("cuda:1" in line for line in asked if not any(word in line for word in no_device))
    trainings = [line for line in asked if line.startswith("bench run")]
    assert all("--dataset folder:here" in line for line in trainings)
    assert all(("--tiny" in line) is tiny for line in trainings)
    assert ("--recipe epochs=7" in trainings[0]) is not tiny
    assert ("--recipe preset=adnce" in trainings[2]) is not tiny


WORDS = """#!/bin/sh
{{ printf %s "${{0##*/}}"; printf '\\t%s' "$@"; echo; }} >> {log}
echo said
"""


@pytest.mark.parametrize("tiny", [True, False])
def test_every_command_of_the_script_can_be_given(tiny: bool, tmp_path: Path) -> None:
    """A command that no entry of `CHECKS` knows fails as well."""
    _, asked = run(tmp_path, WORDS, DEVICE="cpu", **({"TINY": "1"} if tiny else {}))
    for line in asked:
        tool, *words = line.split("\t")
        python(words) if tool == "python" else bench(words)


def bench(words: Sequence[str]) -> None:
    """Read the words of `bench` as the command does, and check the names among them."""
    name, *rest = words
    CHECKS[name](get_command(app).commands[name].make_context(name, rest).params)


def check_run(params: dict[str, Any]) -> None:
    loss = LossSpec(params["loss"], parse_pairs("--set", params["set_"]))
    about = params["domain"], params["dataset"], loss
    experiment = experiment_of_options(*about, params["recipe"], params["tiny"], params["target"])
    experiment.check()
    loss.check()


def check_perf(params: dict[str, Any]) -> None:
    part, names = params["part"], params["names"] or []
    if part == "losses":
        assert all(map(is_registered, names))
        return
    about = declaration(part)
    assert about.perf
    if part == "sentence":
        assert [make_recipe(part, {"encoder": name}) for name in names]
    else:
        assert set(names) <= set(about.datasets)


def check_plan(params: dict[str, Any]) -> None:
    options = params.get("only") or [], params.get("seeds"), params["tiny"], None
    assert make_plan(params["what"], *options, params["results"], True).tasks()


CHECKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "doctor": lambda params: None,
    "check-device": lambda params: None,
    "perf": check_perf,
    "run": check_run,
    "sweep": check_plan,
    "compare": lambda params: load_table(params["name"]),
}


def python(words: Sequence[str]) -> None:
    """Check the files that python is given, and the words of the verdict's script."""
    if words[:2] == ["-m", "pytest"]:
        *_, configuration, _, root, _, mark, folder = words
        assert Path(configuration).is_file()
        assert (Path(root) / "tests/gpu").samefile(folder)
        assert mark == "gpu"
        return
    script, table, *_ = words
    assert Path(script).samefile(accepted.__file__)
    assert load_table(table).name


@pytest.mark.parametrize(
    ("words", "error", "named"),
    [
        ("run --domain image --loss infonc", UserError, "infonc"),
        ("run --domain image --loss infonce --recipe preset=adnc", UserError, "adnc"),
        ("sweep adnce-table44", UserError, "adnce-table44"),
        ("sweep adnce-table4 --only row=ADNCE", UserError, "ADNCE"),
        ("perf losses hlc", AssertionError, "hlc"),
        ("perf graph MUTAK", AssertionError, "MUTAK"),
        ("check-devices cuda", KeyError, "check-devices"),
    ],
)
def test_a_wrong_name_in_the_script_would_be_seen(
    words: str, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        bench(words.split())


FIRST = ["check-device", "-m pytest", "perf losses", "--loss infonce", "--loss adnce", "sweep "]
BERT = ("SimCSE-BERT-base (tau0)", "SimCSE-BERT-base (tau*)", "ADNCE-BERT-base")


def test_the_first_half_begins_with_what_tells_most(tmp_path: Path) -> None:
    _, asked = run(tmp_path, WORDS, HALF="card")
    told = [" ".join(line.split("\t")[1:]) for line in asked]
    found = [next(i for i, line in enumerate(told) if word in line) for word in FIRST]
    assert found == sorted(found)
    only = [f"row={row}" for row in BERT]
    assert all(f"--only {one}" in told[found[-1]] for one in only)
    tasks = make_plan("adnce-table4", only, "0", False, None, tmp_path).tasks()
    assert [one.experiment.full_recipe.model_dump()["encoder"] for one in tasks] == [
        "bert-base-uncased"
    ] * 3


def test_the_second_half_runs_a_seed_of_all_rows_after_the_other(tmp_path: Path) -> None:
    size = {"TEMPERATURE": "0.1", "SUITE_EPOCHS": "9"}
    done, asked = run(tmp_path, HALF="suite", JOBS="4", **size)
    sweeps = [line for line in asked if " sweep " in f" {line} "]
    assert (done.returncode, len(sweeps), len(asked)) == (0, 5, 7)
    assert [f"--seeds {seed} --jobs 4" in line for seed, line in enumerate(sweeps)] == [True] * 5
    table = load_table(str(tmp_path / "out/suite.yaml"))
    assert [row.name for row in table.rows] == [
        *(f"{loss} (temperature=0.1)" for loss in ("infonce", "decoupled", "hcl", "adnce")),
        "temperature 5",
        "pairs by class",
    ]
    recipe = table.experiment(table.rows[0], "folder:here").full_recipe
    assert (recipe.encoder, recipe.width, recipe.precision, recipe.epochs, recipe.limit) == (
        "resnet18", 0.5, "bf16", 9, None,
    )  # fmt: skip
    assert table.seeds == [0, 1, 2, 3, 4]


def test_the_exit_code_is_that_of_the_last_part(tmp_path: Path) -> None:
    fails = NOTES + '[ "${{0##*/}}" != python ] || exit 4\n'
    assert run(tmp_path, fails, HALF="suite")[0].returncode == 4


def test_what_time_does_not_allow_is_left_out(tmp_path: Path) -> None:
    _, asked = run(tmp_path, HALF="suite", SUITE_LIMIT="0")
    assert len(asked) == 2
    assert "suite-seed" not in (tmp_path / "out/summary.txt").read_text()


SUITE_FILE = """\
seeds: 0-4
controls: [temperature 5, pairs by class]
losses: [{infonce: {temperature: 0.2}}, hcl]
domains: {image: {datasets: [digits]}}
"""


@pytest.mark.parametrize(
    ("worse", "better", "code", "said"),
    [
        (-5.0, 5.0, 0, "accepted: temperature 5: differs (-5.00 points, Holm p "),
        (-5.0, 0.0, 1, "not accepted: temperature 5: differs "),
        (5.0, 5.0, 1, "not accepted: temperature 5: does not differ (+5.00 points, "),
        (-5.0, None, 1, "pairs by class: no records"),
    ],
)
def test_it_is_accepted_where_both_controls_differ(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    worse: float,
    better: float | None,
    code: int,
    said: str,
) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE_FILE)
    table = load_table(str(path)).as_smoke_test()
    shifts = {"": 0.0, "temperature 5": worse, "pairs by class": better}
    for k, row in enumerate(table.rows):
        shift = shifts[row.control]
        for seed in table.seeds if shift is not None else ():
            noise = seed * (k + 2) % 5 / 10
            work = table.experiment(row, "digits")
            made(tmp_path, work, seed, metrics={"accuracy": 50.0 + shift + noise})
    assert accepted.main([str(path), "--results", str(tmp_path), "--tiny"]) == code
    assert said in capsys.readouterr().out
