"""Write what a verification found, as Markdown that fits into a comment on a pull request."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.running.reproduction import Outcome
from contrastbench.benchmarks.submission.verify import BUNDLE_CHECKS, Verification
from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table

PASSED, FAILED, NOT_REACHED = "passed", "**failed**", "not reached"


def comment(case: Verification) -> str:
    """Return the verdict, the checks, the cells that ran again, and the loss's standing."""
    about = case.given.about
    verdict = "NOT verified" if case.problem else "verified"
    parts = [
        f"## {escaped_cell(about.loss)} on {escaped_cell(about.suite)}: {verdict}",
        f"Licence {escaped_cell(about.licence)}. Paper: {escaped_cell(about.paper)}. "
        f"The bundle's sha256 begins with {case.given.digest[:16]}.",
        "\n".join(markdown_table([["check", "result", "found"], *checks(case)])),
    ]
    if case.outcomes:
        rows = [["cell", "metric", "recorded", "again", "limit"], *map(rerun_row, case.outcomes)]
        parts += ["### Cells run again", "\n".join(markdown_table(rows))]
    if case.standing:
        parts += ["### Standing", escaped_cell(case.standing)]
    return without_folder("\n\n".join([*parts, ""]), case.folder)


def without_folder(text: str, folder: Path) -> str:
    """Return a text that names the bundle's files as the bundle does.

    >>> without_folder("/tmp/x/loss/mine.py:Mine", Path("/tmp/x"))
    'mine.py:Mine'
    """
    return text.replace(f"{folder / 'loss'}/", "").replace(f"{folder}/", "")


def checks(case: Verification) -> Iterator[list[str]]:
    """Yield a row for each check."""
    for name in BUNDLE_CHECKS:
        if name in case.passed:
            yield [name, PASSED, case.passed[name]]
        elif case.problem and case.problem[0] == name:
            yield [name, FAILED, case.problem[1]]
        else:
            yield [name, NOT_REACHED, ""]


def rerun_row(outcome: Outcome) -> list[str]:
    """Return the row of a cell that ran again, with its main metric."""
    record, again = outcome.record, outcome.again
    title = f"{record['domain']} {record['dataset']} seed {record['seed']}"
    name = record.get("main", "")
    limit = outcome.spread.limits.get(name)
    numbers = [
        f"{one['metrics'][name]:.4f}" if name in one.get("metrics", {}) else one["status"]
        for one in (record, again)
    ]
    shown = "equal to the bit" if outcome.equal else "unknown" if limit is None else f"{limit:.4f}"
    return [title, name, *numbers, shown]
