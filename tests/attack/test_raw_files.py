"""Every raw file of every reader, removed, cut at 20 places and with 100 flips.

One line names it, or its set, or the content is another one and its hash, which stands in the
record, says so: a bit of a user's own CSV file cannot be missed. A reader without a set in
raw_files.py fails.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

import raw_files
from counts import dice, times
from damaged import attack

FLIPS, CUTS = times(100), 20
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, about damage


def test_every_reader_has_its_files() -> None:
    made = {raw.of for raw in raw_files.RAW.values()}
    assert raw_files.readers() == made | raw_files.NO_FILES.keys()


@pytest.mark.parametrize("name", raw_files.RAW)
def test_damaged_raw_files(
    name: str, ram: Path, offline: None, found: Callable[[str], None]
) -> None:
    raw = raw_files.RAW[name]
    raw.make(ram)
    files, refused = [path for path in sorted(ram.rglob(raw.which)) if path.is_file()], 0
    with raw_files.small():
        for path in files:
            refused += attack(
                path, lambda: raw.read(ram), FLIPS, raw.named, rng=dice(path.name), missed=raw.whole
            )
    count = len(files) * (1 + CUTS + FLIPS)
    found(f"data: {name}: {count} damages of {len(files)} files, {refused} refused: 0 unnamed")
