"""Whatever stands on the command line: an answer, or one line that says what is wrong with it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from hypothesis import example, given
from hypothesis import strategies as st

import words
from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.tables.catalogue import table_names as tables
from contrastbench.domains.registry import DOMAINS
from contrastbench.losses.registry import LOSSES
from counts import often

ASK = [sys.executable, "-P", words.__file__]
Said = tuple[int, str, str, float]  # exit code, standard output, standard error, seconds
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


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Words of each command, with its parameters."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command.params


COMMANDS = dict(commands(typer.main.get_command(app)))


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
    """Exit code 0, 1 or 2; a mistake is one line."""
    code, _, err, _ = said
    assert code in (0, 1, 2), (asked, said)
    assert "Traceback" not in err, (asked, err)
    if code == 2:
        last = err.splitlines()[-1]
        assert last.startswith("bench: "), (asked, err)
        assert err.endswith(f"{last}\n"), (asked, err)
        assert err.count("bench: ") >= len(err.splitlines()), (asked, err)


def test_in_one_process(tmp_path: Path, found: Callable[[str], None]) -> None:
    codes, longest = [0, 0, 0], 0.0
    with subprocess.Popen(
        ASK, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout

        @often(600)
        @example(["list", "losses"])  # one that is right
        @given(lists())
        def ask(asked: list[str]) -> None:
            nonlocal longest
            print(json.dumps(asked), file=process.stdin, flush=True)
            said = json.loads(process.stdout.readline())
            check(asked, said)
            codes[said[0]] += 1
            longest = max(longest, said[3])

        ask()
        process.stdin.close()
    assert codes[0], "some are right"
    assert codes[2], "some are wrong"
    found(
        f"input: {sum(codes)} lists of words: exit codes 0, 1, 2 of {codes}, one line each, "
        f"{longest:.1f} s at most"
    )
