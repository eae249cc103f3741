"""Analyses are declared once: command, help, page and modules follow the declarations."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from typer.main import get_command

from contrastbench.benchmarks.analyses.declaration import Parameter
from contrastbench.benchmarks.analyses.registry import ANALYSES
from contrastbench.benchmarks.cli.arguments import parse_losses
from contrastbench.benchmarks.cli.main import app
from contrastbench.errors import UserError

PAGE = Path(__file__).parents[3] / "docs" / "analyses.md"
NAMED = [(name, key) for name, about in ANALYSES.items() for key in about.parameters]
MISTAKES = [
    (["score"], "unknown analysis 'score': did you mean 'scores'?"),
    (["nothing"], "unknown analysis 'nothing': known: false-negatives, learning-curve, "),
    (["scores"], "bench analyse scores needs a loss: give --loss (bench list losses)"),
    (["scores", "--loss", "infonce"], "bench analyse scores needs a domain: give --domain"),
    (
        ["false-negatives", "--loss", "infonce", "--with", "kep=1"],
        "unknown parameter of bench analyse false-negatives 'kep': did you mean 'kept'?",
    ),
    (
        ["weights", "--loss", "infonce", "--with", "points=1"],
        "unknown parameter of bench analyse weights 'points': known: none",
    ),
    (["learning-curve", "--loss", "infonce", "--with", "every"], "--with 'every': give KEY=VALUE"),
    (
        ["learning-curve", "--loss", "infonce", "--with", "every=many"],
        "--with every=many: give a whole",
    ),
    (["weights", "--loss", "infonce", "--seeds", "1"], "bench analyse weights takes no --seeds"),
    (
        ["scores", "--domain", "graph", "--loss", "infonce", "--seeds", "0,1"],
        "bench analyse scores takes one seed, got --seeds 0,1: give --seed N",
    ),
    (
        ["false-negatives", "--domain", "graph", "--loss", "infonce", "--loss", "adnce"],
        "bench analyse false-negatives takes one loss, got 2: give one --loss",
    ),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_line(bench, words: list[str], message: str) -> None:
    code, out, err = bench("analyse", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"bench: {message}")
    assert not Path("results").exists(), "nothing was begun"


def test_the_help_lists_all_analyses_on_a_line_each(bench) -> None:
    code, out, _ = bench("analyse", "--help")
    assert code == 0
    for name, about in ANALYSES.items():
        assert re.search(rf"^  {name} +{re.escape(about.summary)}$", out, re.MULTILINE)


@pytest.mark.parametrize("name", ANALYSES)
def test_the_help_of_an_analysis_has_its_parameters_and_its_options_alone(bench, name) -> None:
    code, out, _ = bench("analyse", name, "--help")
    assert code == 0
    assert ANALYSES[name].summary in out
    assert all(f"  {key}=" in out for key in ANALYSES[name].parameters)
    shown = set(re.findall(r"^  --([a-z-]+)", out, re.MULTILINE))
    options = {option.replace("_", "-") for option in ANALYSES[name].options}
    assert shown - {"help"} == {"loss", "with", "output", *options}


@pytest.mark.parametrize("name", ANALYSES)
def test_what_is_declared_is_there(name: str) -> None:
    about = ANALYSES[name]
    module = importlib.import_module(f"contrastbench.benchmarks.analyses.{name.replace('-', '_')}")
    assert [*inspect.signature(module.run).parameters] == ["work"]
    known = {param.name for param in get_command(app).commands["analyse"].params}
    assert set(about.options) <= known
    parse_losses(about.losses)
    assert all(example.startswith(f"bench analyse {name} ") for example in about.examples)


@pytest.mark.parametrize(("name", "key"), NAMED)
def test_a_parameter_has_a_default_that_it_allows_and_a_line_on_the_page(name, key) -> None:
    parameter = ANALYSES[name].parameters[key]
    values = parameter.default if parameter.several else (parameter.default,)
    assert [parameter.check(key, value) for value in values] == list(values)
    assert parameter.help[0].isupper()
    assert parameter.help.endswith(".")
    text = ",".join(str(value).removesuffix(".0") for value in values)
    rows = re.findall(rf"^\| `--with {key}=` \|.*\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert [row.strip("`") for row in rows] == [text], "docs/analyses.md has its default"


@pytest.mark.parametrize("value", [True, None, "1", float("nan"), float("inf"), -1, 1.5, 11])
def test_a_value_of_another_kind_or_out_of_range_is_refused(value: object) -> None:
    whole = Parameter(int, 1, "A number.", high=10)
    with pytest.raises(UserError, match=r"give a whole number from 0 to 10$"):
        whole.check("n", value)
