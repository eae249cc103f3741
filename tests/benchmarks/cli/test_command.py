"""A record's command makes the record again."""

import json
import random
import shlex
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from typer.main import get_command

from contrastbench.benchmarks.cli import main as cli
from contrastbench.benchmarks.cli.options import parse_pairs
from contrastbench.benchmarks.records.command import as_yaml, parse_value, run_command
from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import LOSSES, LossSpec, UserError
from counts import dice, times

MINE = """
from helper import Base

class Mine(Base):
    def __init__(self, temperature=0.5, margin=0.1):
        super().__init__(temperature)
        self.margin = margin
"""
HELPER = (
    "from contrastbench.losses.library.infonce import InfoNCE\nclass Base(InfoNCE):\n    pass\n"
)
RUN = get_command(cli.app).commands["run"]  # type: ignore[attr-defined]
ODD = ["1", "1e3", "1_0", "nan", "true", "null", "~", " x", "x ", "", "a=b", "[1]", "{a", "# x"]
ODD += [
    *("a: b", "it's", '"q"', "über", "中", "$HOME", "`ls`", "a\\b", "٣", "x" * 200, "- x"),
    "\u2028",
]


def test_the_command_of_own_loss_data_and_settings(bench, tmp_path: Path) -> None:
    (tmp_path / "my losses").mkdir()
    (tmp_path / "my losses" / "mine.py").write_text(MINE)
    (tmp_path / "my losses" / "helper.py").write_text(HELPER)
    rows = ["a,b,it's", *(f"{i},{i * i % 7},{i % 2}" for i in range(60))]
    (tmp_path / "my data.csv").write_text("\n".join(rows))
    words = ["--domain", "tabular", "--dataset", "csv:my data.csv", "--target", "it's"]
    words += ["--loss", "infonce + 0.5*my losses/mine.py:Mine", "--set", "mine.margin=0.2"]
    words += ["--tiny", "--recipe", "batch_size=8", "--recipe", "epochs=1", "--device", "cpu"]
    code, out, err = bench("run", *words, "--json")
    assert code == 0, err
    record = json.loads(out)
    again = json.loads(bench(*shlex.split(record["command"])[1:], "--json", "--results", "x")[1])
    assert (again["key"], again["metrics"]) == (record["key"], record["metrics"])
    assert record["own_loss"] == {
        "name": "infonce + 0.5*mine.py:Mine",
        "files": {"mine.py": MINE, "helper.py": HELPER},
    }


def test_a_sum_in_a_folder_of_an_odd_name_keeps_its_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`+` and `*` of a folder would be read as those of the sum."""
    folder = tmp_path / "c++"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "helper.py").write_text(HELPER)
    monkeypatch.chdir(folder)
    for name, shown in (
        ("mine.py:Mine", f"{folder}/mine.py:Mine"),
        ("infonce + mine.py:Mine", "infonce + mine.py:Mine"),
    ):
        found = parsed(run_command(Experiment("graph", "motifs", LossSpec(name), {}), 0))
        assert found["loss"] == shown


def test_the_command_of_a_path_that_is_no_text_can_be_shown() -> None:
    line = run_command(Experiment("tabular", "csv:\udcff.csv", LossSpec("infonce"), {}), 0)
    assert r"csv:\udcff.csv" in line.encode().decode()


@pytest.mark.parametrize("value", [*ODD, ODD, 1, 1.0, True, None, 1e-5, 5e-324, -3, [], [[1.0]]])
def test_values_are_read_as_they_were_written(value: Any) -> None:
    text = f"key={as_yaml(value)}"
    (found,) = parse_pairs("--recipe", shlex.split(shlex.quote(text))).values()
    assert repr(found) == repr(value)
    assert repr(parse_value(as_yaml(value))) == repr(value)


BOMB = ", ".join(f"&l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 9))


@pytest.mark.parametrize(
    "text", ["!!int", "!!timestamp x", "[" * 10_000, "&a [*a]", f"[&l0 [1], {BOMB}]"]
)
def test_what_yaml_cannot_read_is_a_text(text: str) -> None:
    assert parse_value(text) == text


def test_any_experiment_is_that_of_its_command() -> None:
    draw = dice("commands")
    seen = set()
    for _ in range(times(1000, least=100)):
        work, seed = drawn(draw), draw.randrange(2**32)
        found = parsed(run_command(work, seed))
        assert found["experiment"].key == work.key
        assert found["experiment"].full_recipe == work.full_recipe
        assert found["experiment"].loss.complete == work.loss.complete
        assert found["seeds"] == str(seed)
        seen.add(work.key)
    assert len(seen) >= times(1000, least=100) / 2, "most are different"


def parsed(line: str) -> dict[str, Any]:
    """The words of a command as `bench run` gets them, and the experiment they ask for."""
    words = shlex.split(line)
    assert words[:2] == ["bench", "run"]
    given = RUN.make_context("run", words[2:]).params
    loss = LossSpec(given["loss"], parse_pairs("--set", given["set_"]))
    recipe = parse_pairs("--recipe", given["recipe"])
    about = given["domain"], given["dataset"], loss, recipe, given["tiny"], given["target"]
    made = make_experiment(*about)
    return {**given, "experiment": made}


def drawn(draw: random.Random) -> Experiment:
    """Any experiment whose recipe the domain accepts."""
    while True:
        domain = draw.choice(list(DOMAINS))
        about = declaration(domain)
        fields = list(about.recipe.model_fields)
        recipe = {name: value_of(about.recipe, name, draw) for name in draw.sample(fields, 4)}
        sources = [f"{one.kind}:{draw.choice(ODD)}x" for one in about.sources if not one.corpus]
        dataset = draw.choice([about.default, *about.datasets, *sources])
        work = Experiment(domain, dataset, loss(draw), recipe)
        try:
            make_experiment(domain, dataset, work.loss, {})
            work.check()
        except UserError:
            continue
        return work


def loss(draw: random.Random) -> LossSpec:
    names = draw.sample(list(LOSSES), draw.choice([1, 1, 2]))
    name = " + ".join(draw.choice(["", "0.5*", "1e-05*"]) * (len(names) > 1) + n for n in names)
    defaults = LossSpec(name).complete.params
    given = {
        key: draw.uniform(0, 1) if type(value) in (int, float) else value
        for key, value in defaults.items()
        if draw.random() < 0.5
    }
    return LossSpec(name, given)


def value_of(recipe: type[Recipe], name: str, draw: random.Random) -> Any:
    field = recipe.model_fields[name]
    kinds = [field.annotation, *get_args(field.annotation)]
    choices = [x for kind in kinds if get_origin(kind) is Literal for x in get_args(kind)]
    by_kind = {
        bool: [True, False],
        int: [draw.randrange(1, 300)],
        float: [draw.uniform(0, 1), 10 ** draw.uniform(-9, 3)],
        str: ODD,
        type(None): [None],
    }
    choices += [x for kind in kinds if kind in by_kind for x in by_kind[kind]]
    if "tuple" in str(field.annotation):
        choices += [[draw.randrange(1, 64) for _ in range(draw.randrange(4))]]
    return draw.choice([*choices, field.default])


def test_shipped_records_name_no_folder_of_a_machine() -> None:
    runs = Path(__file__).parents[3] / "results" / "runs"
    for path in runs.rglob("*.json"):
        words = shlex.split(json.loads(path.read_bytes()).get("command", ""))
        assert not any(Path(word.rpartition("=")[2]).is_absolute() for word in words), path


def test_a_gpus_settings_are_in_the_command() -> None:
    from contrastbench.benchmarks.running.options import Options
    from contrastbench.benchmarks.running.runner import device_words

    cuda = torch.device("cuda", 1)
    root = Options(data_root=Path("the data"), deterministic=False, tf32=True)
    assert device_words(root, cuda) == [
        *("--device", "cuda:1", "--threads", str(torch.get_num_threads())),
        *("--no-deterministic", "--tf32"),
    ]
    plain = ["--device", "cpu", "--threads", str(torch.get_num_threads())]
    assert device_words(Options(), torch.device("cpu")) == plain
