"""Whatever is asked for: it can be had, or one line says what is wrong.

What may be asked is read from the declarations, so that a new key is attacked without a new test.
"""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import UserError
from contrastbench.losses.registry import losses
from contrastbench.losses.spec import LossSpec
from counts import often, times

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
    "tune": {"seeds": [1000, 1001], "trials": 2, "search": "points"},
    "decimals": 2,
}


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all that stands in a document."""
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
