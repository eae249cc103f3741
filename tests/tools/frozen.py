"""Numbers that tests keep in a JSON file: how new ones are added, and old ones written anew.

A kept number stays as it is, to its last digit, until somebody asks for it by name. Otherwise each
new loss would hide the drift of all others that is smaller than what the tests allow.
"""

import argparse
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any


def asked(names: Collection[str], argv: list[str] | None = None) -> Collection[str]:
    """Read from the command line which names to write anew: none, those of --anew, or all."""
    parser = argparse.ArgumentParser(description="write what is new, and leave every other line")
    parser.add_argument(
        "--anew", nargs="*", choices=list(names), metavar="NAME", help="without a name: all"
    )
    anew = parser.parse_args(argv).anew
    return names if anew == [] else anew or ()


def updated(
    kept: Mapping[str, Any],
    names: Collection[str],
    compute: Callable[[str], Any],
    anew: Collection[str] = (),
) -> dict[str, Any]:
    """Return the kept entry of each name, in the file's order, and new ones at the end."""
    old = {name: entry for name, entry in kept.items() if name in names}
    new = [name for name in names if name not in kept or name in anew]
    return {**old, **{name: compute(name) for name in new}}


def read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text()))


def write(file: Path, entries: Mapping[str, Any]) -> None:
    """Write the entries as `read` finds them; floats keep every digit."""
    file.write_text(json.dumps(entries, indent=1) + "\n")


def check_names(where: str, there: Collection[str], names: Collection[str], remedy: str) -> None:
    """Fail in one line where a list lacks names, or still has some that were removed."""
    lacks = ", ".join(name for name in names if name not in there)
    extra = ", ".join(name for name in there if name not in names)
    said = [f"lacks {lacks}"] * bool(lacks) + [f"still has {extra}"] * bool(extra)
    assert not said, f"{where} {' and '.join(said)}: {remedy}"


def with_table(page: str, head: str, lines: str) -> str:
    """Return the page with other lines in the table under a head."""
    before, _, after = page.partition(head)
    return f"{before}{head}{lines}\n{after.partition(chr(10) * 2)[2]}"
