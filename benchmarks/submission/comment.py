"""Write what a verification found, as Markdown that fits into a comment on a pull request."""

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from contrastbench.benchmarks.report.words import rendered
from contrastbench.benchmarks.running.reproduction import Outcome
from contrastbench.benchmarks.submission.bundle import LOSS_FOLDER, Bundle, as_refusal
from contrastbench.benchmarks.submission.verify import CHECKS, Verification

MOST_ROWS = 20  # cells that are listed


def unread(given: Bundle) -> str:
    """Return what is to be read before the loss may run."""
    sources = given.under(LOSS_FOLDER)
    imports = imported_modules(sources.values())
    return page(given, "not judged", files=[*sources], imports=imports)


def imported_modules(sources: Iterable[bytes]) -> list[str]:
    """Return the modules that files import, for a reader who decides whether to trust them."""
    found = set[str]()
    for node in (node for data in sources for node in ast.walk(as_refusal(ast.parse, data))):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or ".")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return sorted(found)


def comment(case: Verification) -> str:
    """Return the verdict, the checks, the claims that differ, and where the loss stands."""
    checks = [["check", "result", "found"], *check_rows(case)]
    differing = [claim_row(one) for one in case.differing[:MOST_ROWS]]
    if differing:
        differing.insert(0, ["cell", "metric", "claimed", "made here", "limit"])
    verdict = "NOT verified" if case.problem else "verified"
    about = {"checks": checks, "differing": differing, "standing": case.standing}
    text = page(case.given, verdict, **about)
    for own in ("loss/", "stand-in/", ""):  # files have the names that the bundle gives them
        text = text.replace(f"{case.folder}/{own}", "")
    return text


def page(given: Bundle, verdict: str, **values: Any) -> str:
    """Return the page of a bundle with a verdict."""
    shown = {"files": [], "differing": [], "standing": "", **values}
    about, template = given.about, "verification.md.j2"
    return rendered(template, about=about, digest=given.digest, verdict=verdict, **shown)


def check_rows(case: Verification) -> Iterator[list[str]]:
    """Yield a row for each check."""
    for name in CHECKS:
        if case.problem and case.problem[0] == name:
            yield [name, "**failed**", case.problem[1]]
        else:
            yield [
                name,
                "passed" if name in case.passed else "not reached",
                case.passed.get(name, ""),
            ]


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
