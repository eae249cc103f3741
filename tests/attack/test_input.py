"""Whatever is asked for, in a recipe, a file or on the command line: an answer, or one line."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import words
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.catalogue import table_names as tables
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import UserError
from contrastbench.losses.registry import LOSSES, losses
from contrastbench.losses.spec import LossSpec
from counts import often, times
from forked import answering

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(
        [0, 1, 2, 0.5, -1, 1e-12, 1e30, 2**63, 10**400, "", "none", "a\nb", "\x00", "é" * 300]
    ),
    st.text(max_size=8),
)
VALUES = st.one_of(
    PLAIN, st.lists(PLAIN, max_size=3), st.dictionaries(st.text(), PLAIN, max_size=2)
)


def one_line(ask: Callable[[], Any]) -> None:
    """Do it, or be told why not in one line; anything else is a defect."""
    try:
        ask()
    except UserError as error:
        text = str(error)
        assert text
        assert len(text.splitlines()) == 1, text
        assert "Traceback" not in text


@pytest.mark.parametrize("domain", DOMAINS)
def test_recipes(domain: str, found: Callable[[str], None]) -> None:
    about = declaration(domain)
    keys = st.sampled_from([*about.recipe.model_fields, "preset", "misspelt"])

    @often(4000)
    @given(st.dictionaries(keys, VALUES, max_size=4))
    def ask(values: dict[str, Any]) -> None:
        def made() -> None:
            work = Experiment(domain, about.default, LossSpec("infonce"), values)
            assert work.key
            assert work.full_recipe.idle(trained=True) >= set()

        one_line(made)

    ask()
    found(f"input: {times(4000)} recipes of domain {domain}: each is made, or one line")


def test_losses(found: Callable[[str], None]) -> None:
    @often(4000)
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(losses())))
        keys = st.sampled_from([*LossSpec(name).complete.params, "misspelt"])
        params = data.draw(st.dictionaries(keys, VALUES, max_size=3))
        one_line(LossSpec(name, params).check)

    ask()
    found(f"input: {times(4000)} losses with parameters: each is made, or one line")


FILE = {
    "title": "mine",
    "seeds": "0-2",
    "domains": {"graph": {"datasets": ["MUTAG"], "recipe": {"epochs": 2}}, "tabular": {}},
    "losses": ["none", {"adnce": {"mu": 0.5}}],
    "tune": {"seeds": [1000, 1001], "trials": 2},
    "decimals": 2,
}


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return []
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    below = [((*where, key), child) for key, child in inner]
    return [place for at, child in below for place in (at, *places(child, at))]


@pytest.mark.parametrize(
    "line", ["losses: [{}.py:Mine]", "losses: [{}]", "domains: {{graph: {{datasets: [{}]}}}}"]
)
def test_names_too_long_for_a_file(line: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    whole = {"losses": "losses: [none]", "domains": "domains: {graph: {}}", "seeds": "seeds: 0-1"}
    path.write_text("\n".join({**whole, line.partition(":")[0]: line.format("x" * 300)}.values()))
    for work in (lambda: load_table(str(path), check_values=True), lambda: plan_of(path, tmp_path)):
        with pytest.raises(UserError):
            work()


def plan_of(path: Path, results: Path) -> None:
    make_plan(str(path), [], None, True, None, results)


def test_files(tmp_path: Path, found: Callable[[str], None]) -> None:
    path = tmp_path / "mine.yaml"

    def asked(text: str) -> None:
        path.write_bytes(text.encode(errors="surrogatepass"))
        one_line(lambda: load_table(str(path), check_values=True))
        one_line(lambda: make_plan(str(path), [], None, True, None, tmp_path))

    @often(500)
    @given(st.sampled_from(places(FILE)), VALUES, st.booleans())
    def replaced(place: tuple[Any, ...], value: Any, misspell: bool) -> None:
        document: Any = copy.deepcopy(FILE)
        *parents, last = place
        inner = document
        for key in parents:
            inner = inner[key]
        if misspell and isinstance(inner, dict):
            inner[f"{last}x"] = inner.pop(last)
        else:
            inner[last] = value
        asked(yaml.safe_dump(document, allow_unicode=True))

    @often(500)
    @given(st.integers(0, len(yaml.safe_dump(FILE))), st.text(max_size=3), st.integers(0, 3))
    def torn(place: int, text: str, less: int) -> None:
        whole = yaml.safe_dump(FILE)
        asked(whole[:place] + text + whole[place + less :])

    replaced()
    torn()
    found(f"input: {times(500) * 2} sweep files with one thing wrong: each is read, or one line")


@pytest.mark.parametrize("words", [["--help"], ["list", "losses"], ["list", "tables"]])
def test_a_system_of_few_letters_reads_and_says_what_others_do(words: list[str]) -> None:
    few = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    few["PYTHONIOENCODING"] = ""  # tox sets utf-8
    command = [sys.executable, "-P", "-m", "contrastbench", *words]
    theirs, ours = (
        subprocess.run(command, env=one, capture_output=True, check=True)
        for one in ({**os.environ, "PYTHONUTF8": "1"}, few)
    )
    for few_letters, all_letters in ((ours.stdout, theirs.stdout), (ours.stderr, theirs.stderr)):
        assert few_letters.isascii()
        assert len(few_letters.splitlines()) == len(all_letters.splitlines())


def test_python_without_docstrings_is_said_where_a_library_needs_them() -> None:
    line = "from contrastbench.errors import users_code\nwith users_code('a'): raise ValueError"
    without = {**os.environ, "PYTHONOPTIMIZE": "2"}
    command = [sys.executable, "-P", "-c", line]
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert "without -OO or PYTHONOPTIMIZE=2" in done.stderr.splitlines()[-1]


Said = tuple[int, str, float]  # exit code, standard error, seconds
KNOWN = (
    *(*DOMAINS, *LOSSES, *tables(), "MUTAG", "motifs", "digits", "standard", "smoke", "none"),
    *("losses", "datasets", "fetch", "verify", "graph", "linear", "cpu", "cuda", "md", "mine.yaml"),
)
ODD = (
    *("", " ", "-", "--", "=", "a=", "=a", "a=b=c", "0-", "-1", "3-1", "0-99999999", "1e999"),
    "nan",
    *("\u00e9" * 300, "a\nb", "\x1b[2J", "../..", "/dev/null", "/proc/1/x", "x/" * 200, "~", "*"),
    *("mine.py:Mine", "no.py:No", "csv:", "csv:no", "folder:.", "hf:x@y", "pyg:f(", "infonce +"),
    *("temperature=0.1", "temperature=x", "epochs=2", "epochs=-1", "epochs=1e9", "mu=0.1,0.2"),
    *("points=9", "kept=0,2", "dataset=MUTAG", "column=X", "jobs=2", "time=x", "9" * 400, "0x10"),
    *("True", "[1", "{", "!!x"),
)


COMMANDS = {
    path: command.params
    for path, command in words.commands(typer.main.get_command(app))
    if not hasattr(command, "commands")
}


@st.composite
def lists(draw: st.DrawFn) -> list[str]:
    """A command with some of its options and arguments, and now and then a wrong one."""
    path = draw(st.sampled_from(sorted(COMMANDS)))
    value = st.one_of(*[st.sampled_from(KNOWN)] * 3, st.sampled_from(ODD), TEXT)
    parts = []
    some = st.lists(st.sampled_from(COMMANDS[path]), max_size=4) if COMMANDS[path] else st.just([])
    for parameter in draw(some):
        names = [*parameter.opts, *parameter.secondary_opts] if parameter.opts[0][0] == "-" else []
        flag = getattr(parameter, "is_flag", False)
        parts.append(([draw(st.sampled_from(names))] if names else []) + [draw(value)] * (not flag))
    if draw(st.integers(0, 9)) == 0:
        parts.append([draw(st.one_of(value, st.sampled_from(["--los", "--helpx", "-h", "-q"])))])
    return [*path, *(word for part in draw(st.permutations(parts)) for word in part)]


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def check(asked: list[str], said: Said) -> None:
    code, err, _ = said
    assert code in (0, 1, 2), (asked, said)
    assert "Traceback" not in err, (asked, err)
    if code == 2:
        last = err.splitlines()[-1]
        assert last.startswith("bench: "), (asked, err)
        assert err.endswith(f"{last}\n"), (asked, err)
        assert err.count("bench: ") >= len(err.splitlines()), (asked, err)


def test_in_one_process(tmp_path: Path, found: Callable[[str], None]) -> None:
    codes, longest = [0, 0, 0], 0.0
    with answering(words.answer, tmp_path) as pipe:

        @often(600)
        @example(["list", "losses"])  # one that is right
        @given(lists())
        def ask(asked: list[str]) -> None:
            nonlocal longest
            pipe.send(asked)
            said = pipe.recv()
            check(asked, said)
            codes[said[0]] += 1
            longest = max(longest, said[2])

        ask()
    assert codes[0], "some are right"
    assert codes[2], "some are wrong"
    found(
        f"input: {sum(codes)} lists of words: exit codes 0, 1, 2 of {codes}, one line each, "
        f"{longest:.1f} s at most"
    )
