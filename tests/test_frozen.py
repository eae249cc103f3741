"""What is added to the kept numbers leaves all others as they are."""

import json
import math
from pathlib import Path

import pytest

import frozen

NAMES = ["a", "b", "c"]
DRIFTED = math.nextafter(0.1, 1)  # within what a test allows


def lines(entries: dict[str, list[float]], file: Path) -> list[str]:
    frozen.write(file, entries)
    return file.read_text().splitlines()


@pytest.mark.parametrize("order", [["a", "c"], ["c", "a"]])
def test_a_new_entry_comes_last_and_no_line_of_another_changes(
    order: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "numbers.json"
    kept = {name: [DRIFTED, 1e-17] for name in order}
    *before, _ = lines(kept, file)
    frozen.write(file, frozen.updated(frozen.read(file), NAMES, lambda name: [0.1, 0.0]))
    after = file.read_text().splitlines()
    assert after[: len(before)] == [*before[:-1], before[-1] + ","]
    assert frozen.read(file) == {**kept, "b": [0.1, 0.0]}


def test_an_entry_that_is_asked_for_is_written_anew() -> None:
    kept = dict.fromkeys(NAMES, DRIFTED)
    assert frozen.updated(kept, NAMES, lambda name: 0.1, ["b"]) == {**kept, "b": 0.1}


def test_an_entry_that_is_no_more_is_removed() -> None:
    assert list(frozen.updated({"a": 1, "old": 2}, NAMES[:1], json.loads)) == ["a"]


@pytest.mark.parametrize(
    ("argv", "anew"), [([], []), (["--anew", "b"], ["b"]), (["--anew"], NAMES)]
)
def test_only_an_explicit_argument_writes_anew(argv: list[str], anew: list[str]) -> None:
    assert list(frozen.asked(NAMES, argv)) == anew


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        frozen.asked(NAMES, ["--anew", "d"])
    assert "invalid choice: 'd'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ("ab", "x.json lacks c: run me"),
        ("cbad", "x.json still has d: run me"),
        ("ad", "x.json lacks b, c and still has d: run me"),
    ],
)
def test_one_line_says_what_is_missing_and_what_to_do(there: str, message: str) -> None:
    with pytest.raises(AssertionError) as error:
        frozen.check_names("x.json", list(there), NAMES, "run me")
    assert str(error.value) == message


def test_the_order_of_names_does_not_matter() -> None:
    frozen.check_names("x.json", ["c", "a", "b"], NAMES, "run me")
