"""Write what a verification found, as Markdown that fits into a comment on a pull request."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.running.reproduction import Outcome
from contrastbench.benchmarks.submission import bundle
from contrastbench.benchmarks.submission.bundle import Bundle
from contrastbench.benchmarks.submission.verify import CHECKS, Verification, imported_modules
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table

PASSED, FAILED, NOT_REACHED = "passed", "**failed**", "not reached"
MOST_ROWS = 20  # cells that are listed


def title_of(given: Bundle, verdict: str) -> str:
    """Return the heading, and what the bundle says of itself."""
    about = given.about
    return (
        f"## {escaped_cell(about.loss)} on {escaped_cell(about.suite)}: {verdict}\n\n"
        f"Licence {escaped_cell(about.licence)}. Paper: {escaped_cell(about.paper)}. "
        f"The bundle's sha256 begins with {given.digest[:16]}."
    )


def unread(given: Bundle) -> str:
    """Return what is to be read before the loss may run."""
    sources = given.under(bundle.LOSS_FOLDER)
    imports = ", ".join(imported_modules(sources))
    files = ", ".join(sources)
    return f"{title_of(given, 'not judged')}\n\nRead {files}, which import: {imports}."


def comment(case: Verification) -> str:
    """Return the verdict, the checks, the claims that differ, and where the loss stands."""
    parts = [
        title_of(case.given, "NOT verified" if case.problem else "verified"),
        "\n".join(markdown_table([["check", "result", "found"], *checks(case)])),
    ]
    if case.differing:
        head = ["cell", "metric", "claimed", "made here", "limit"]
        rows = [head, *map(claim_row, case.differing[:MOST_ROWS])]
        parts += ["### Claimed otherwise", "\n".join(markdown_table(rows))]
    if case.standing:
        parts += ["### Standing, by the records made here", escaped_cell(case.standing)]
    return without_folder("\n\n".join([*parts, ""]), case.folder)


def without_folder(text: str, folder: Path) -> str:
    """Return a text that names the bundle's files as the bundle does.

    >>> without_folder("/tmp/x/loss/mine.py:Mine", Path("/tmp/x"))
    'mine.py:Mine'
    """
    for own in ("loss/", "stand-in/", ""):
        text = text.replace(f"{folder}/{own}", "")
    return text


def checks(case: Verification) -> Iterator[list[str]]:
    """Yield a row for each check."""
    for name in CHECKS:
        if case.problem and case.problem[0] == name:
            yield [name, FAILED, case.problem[1]]
        elif name in case.passed:
            yield [name, PASSED, case.passed[name]]
        else:
            yield [name, NOT_REACHED, ""]


def claim_row(outcome: Outcome) -> list[str]:
    """Return the row of a cell whose claim differs, with its main metric."""
    claimed, made = outcome.record, outcome.again
    title = f"{made['domain']} {made['dataset']} seed {made['seed']}"
    name = made.get("main", "")
    limit = outcome.spread.limits.get(name)
    numbers = [
        f"{one['metrics'][name]:.4f}" if name in one.get("metrics", {}) else one["status"]
        for one in (claimed, made)
    ]
    return [title, name, *numbers, "unknown" if limit is None else f"{limit:.4f}"]
