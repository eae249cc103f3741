"""The page `docs/which-code.md` says what `bench check-loss --against` says."""

import re

import pytest

from contrastbench.benchmarks.against import calls
from contrastbench.benchmarks.cli.check import PAIRING_NAMES
from which_code import FILES, PAGE, RELEASED, Row, released, rows


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: f"{row.package} {row.words}")
def test_a_row_says_what_the_command_says(row: Row) -> None:
    if not row.installed:
        pytest.skip(f"{row.package} {row.version} is not installed: pip install it")
    assert row.text() in PAGE.read_text(encoding="utf-8"), "run python tests/tools/which_code.py"


def test_a_difference_has_its_reason() -> None:
    for row in rows():
        (outcome,) = re.findall(r"` \| (equal|different|error)", row.line)
        assert row.why or outcome == "equal", row.line


def test_the_table_of_released_codes_is_that_of_the_golden_values() -> None:
    assert RELEASED + released() in PAGE.read_text(encoding="utf-8"), (
        "run python tests/tools/which_code.py"
    )


@pytest.mark.parametrize("file", sorted(FILES.glob("*.py")), ids=lambda file: file.name)
def test_the_page_shows_the_files_that_rows_need(file) -> None:
    assert f"```{{literalinclude}} ../tests/peers/{file.name}\n" in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_a_table_as_it_is_printed(bench) -> None:
    page = PAGE.read_text(encoding="utf-8")
    ((command, shown),) = re.findall(
        r"```bash\nbench ([^\n]*)\n```\n\n```\n(.*?)```", page, re.DOTALL
    )
    code, out, _ = bench(*command.split())
    assert code == 1
    assert out == shown


def test_the_page_names_every_pairing() -> None:
    assert tuple(calls.PAIRINGS) == PAIRING_NAMES
    assert all(f"`{name}`" in PAGE.read_text(encoding="utf-8") for name in PAIRING_NAMES)
