"""Pages, docstrings and help are written in plain words."""

import pytest
from typer.main import get_command

import prose
from contrastbench.benchmarks.cli.main import app
from words import commands

PAGES = [str(page.relative_to(prose.ROOT)) for page in prose.pages()]
FORMULAS = ("docs/theory.md", "docs/reference/")  # pages that may have longer sentences
VERBS = {"Add", "Check", "Compare", "Compute", "Embed", "Estimate", "Find", "List", "Measure"}
VERBS |= {"Admit", "Choose", "Pack", "Plot", "Run", "Score", "Show", "Train", "Write"}
WIDTH = 62  # columns that `bench --help` has for a summary on a terminal of 80
BUILTIN = {"--install-completion", "--show-completion", "--help"}  # their help is typer's


COMMANDS = {" ".join(("bench", *path)): command for path, command in commands(get_command(app))}


def test_every_docstring_is_a_sentence() -> None:
    assert prose.all_fragments() == []


@pytest.mark.parametrize(
    "first",
    ["Of a record.", "Those that hold here, by name.", "Whose it is, or none.", "The line."],
)
def test_a_fragment_is_found(first: str) -> None:
    source = f'"""Tell of one module."""\n\ndef f():\n    """{first}"""\n'
    assert list(prose.fragments(source)) == [(3, first)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_short_sentences(page: str) -> None:
    mean, long, paragraph = prose.figures((prose.ROOT / page).read_text())
    assert mean <= (20 if page.startswith(FORMULAS) else 18)
    assert long <= 0.05
    assert paragraph <= 90


def test_what_is_counted_of_a_page() -> None:
    heading = "# A heading of words\n"
    text = "One two three `four and five`: [Six](https://a.b/c d) seven. Eight nine.\n"
    long = " ".join(["word"] * 32)
    code = "| one two three four five |\n```bash\nbench list losses and more\n```\n"
    assert prose.figures(f"{heading}\n{text}\n- {long}\n\n{code}") == (
        (4 + 2 + 2 + 32) / 4,
        0.25,
        32,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_one_line_that_begins_with_a_verb(name: str) -> None:
    command = COMMANDS[name]
    summary = command.short_help or command.help
    assert summary.split()[0] in VERBS
    assert len(summary) <= WIDTH
    assert summary.endswith(".")


def test_an_option_is_a_switch_in_every_command_or_takes_a_value_in_every_one() -> None:
    switches: dict[str, set[bool]] = {}
    for command in COMMANDS.values():
        for param in command.params:
            if param.param_type_name == "option":
                switches.setdefault(param.opts[0], set()).add(param.is_flag)
    assert [name for name, kinds in switches.items() if len(kinds) > 1] == []


@pytest.mark.parametrize("name", ["sweep", "plan"])
def test_the_standing_comparison_is_named_where_it_can_be_given(name: str) -> None:
    (what,) = (param for param in COMMANDS[f"bench {name}"].params if param.name == "what")
    assert "standard" in what.help


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_an_option_is_one_plain_line(name: str) -> None:
    """It is at most 90 characters, begins with a capital and is no fragment such as `Of each`."""
    for param in COMMANDS[name].params:
        if not BUILTIN & set(param.opts):
            assert len(param.help) <= 90
            assert param.help[0].isupper()
            assert param.help.endswith((".", "..."))
            assert "\n" not in param.help
            assert not prose.NO_SENTENCE.match(param.help)
