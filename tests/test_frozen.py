"""What is added to the kept numbers leaves all others as they are."""

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


@pytest.mark.parametrize(
    ("argv", "anew"), [([], []), (["--anew", "b"], ["b"]), (["--anew"], NAMES)]
)
def test_only_an_explicit_argument_writes_anew(argv: list[str], anew: list[str]) -> None:
    assert list(frozen.asked(NAMES, argv)) == anew


def test_what_lacks_and_what_is_no_more_is_named() -> None:
    frozen.check_names("x.json", ["c", "a", "b"], NAMES, "run me")
    with pytest.raises(AssertionError, match="lacks b, c and still has d: run me"):
        frozen.check_names("x.json", ["a", "d"], NAMES, "run me")
