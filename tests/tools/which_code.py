"""Compare losses of libraries with ours, and write the tables of `docs/which-code.md`.

`which_code.py` writes anew the outcome of each row whose package is installed in the
version that the row names; all other rows stay as they are.
"""

import json
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from contrastbench.benchmarks.against.calls import CalledLoss
from contrastbench.benchmarks.against.compare import compare_on_batches
from contrastbench.benchmarks.cli.options import parse_loss
from contrastbench.errors import UserError
from frozen import with_table

TESTS = Path(__file__).parents[1]
FILES = TESTS / "peers"  # what a reader writes to run some rows
PAGE = TESTS.parent / "docs" / "which-code.md"
GOLDEN = TESTS / "losses" / "golden.json"
HEAD = (
    "| package | command, after `bench check-loss` | outcome | why |\n| --- | --- | --- | --- |\n"
)
RELEASED = "| code | place | ours | equal at |\n| --- | --- | --- | --- |\n"


@dataclass(frozen=True)
class Row:
    """A comparison with a loss of a package."""

    package: str  # as pip names it
    version: str
    words: str
    why: str
    line: str  # as it stands on the page

    @property
    def key(self) -> str:
        """Return the cells by which the row is found in the table."""
        return f"| {self.package} {self.version} | `{self.words}` |"

    @property
    def installed(self) -> bool:
        try:
            return version(self.package) == self.version
        except PackageNotFoundError:
            return False

    def text(self) -> str:
        return f"{self.key} {outcome(self.words)} | {self.why} |\n"


def rows() -> Iterator[Row]:
    _, _, lines = PAGE.read_text(encoding="utf-8").partition(HEAD)
    for line in lines.partition("\n\n")[0].splitlines(keepends=True):
        found = re.fullmatch(r"\| (\S+) (\S+) \| `(.*?)` \|.*\| (.*?) ?\|\n?", line)
        assert found, line
        yield Row(*found.groups(), line.rstrip("\n") + "\n")


def outcome(words: str) -> str:
    """Return the last line that `bench check-loss` prints."""
    first, *rest = shlex.split(words)
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    pairing = given.get("--pairing", "both_views")
    specs = [parse_loss(text) for text in (first, given["--against"])]
    sides = [CalledLoss(spec.name, spec.params, pairing) for spec in specs]
    with chdir(FILES), warnings.catch_warnings(action="ignore"):
        try:
            return compare_on_batches(*sides).verdict
        except UserError as error:
            return f"error: {error}"


def released() -> str:
    """Return the rows of released codes, whose values are in golden.json."""
    counts = Counter[tuple[str, str, str]]()
    for group in json.loads(GOLDEN.read_text())["released"]:
        place = group["place"].partition(" (")[0].replace("|", "\\|")
        state = group.get("release") or group["commit"][:7]
        code = f"[{group['repository'].rpartition('/')[2]}]({group['repository']}) {state}"
        gradients = "" if "value" in group["cases"][0] else ", gradients"
        loss = f"`{group['loss'].rpartition(':')[2]}`, {group['pairing']}{gradients}"
        counts[code, place, loss] += len(group["cases"])
    lines, before = "", ""
    for (code, place, loss), count in counts.items():
        lines += f"| {code * (code != before)} | {place} | {loss} | {count} |\n"
        before = code
    return lines


def table() -> str:
    """Return the rows of packages: those of what is installed anew, others as on the page."""
    return "".join(row.text() if row.installed else row.line for row in rows())


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    page = with_table(page, HEAD, table())
    PAGE.write_text(with_table(page, RELEASED, released()), encoding="utf-8")
