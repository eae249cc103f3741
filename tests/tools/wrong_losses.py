"""Losses with one mistake each, and the table of `docs/check-loss.md` that shows them.

`python tests/tools/wrong_losses.py` writes the table anew.
"""

import ast
import re
from pathlib import Path

import frozen
from contrastbench.losses.laws import CheckResult, check_loss

FILE = Path(__file__).parents[1] / "losses" / "laws" / "wrong.py"
PAGE = Path(__file__).parents[2] / "docs" / "check-loss.md"
HEAD = "| mistake | `bench check-loss` says | try |\n| --- | --- | --- |\n"
LAWS = {  # class -> the one law that names its mistake
    "TypingError": "runs",
    "NoReturn": "runs",
    "Shapes": "runs",
    "TemperatureZero": "runs",
    "HolesInMean": "runs",
    "Root": "runs",
    "TopK": "runs",
    "InPlace": "in place",
    "MeanInTerms": "terms",
    "Square": "terms",
    "Randomness": "randomness",
    "Device": "device",
    "Detached": "detached",
    "Sign": "sign",
    "NegativeSign": "sign",
    "NoPositives": "positives",
    "Flat": "positives",
    "NoNegatives": "negatives",
    "Order": "permutation",
    "Count": "holes",
    "ExpOfZero": "holes",
    "Padding": "padding",
    "SumOfPositives": "repeated positives",
    "SumOfAnchors": "repeated anchors",
    "SoftmaxOfAnchors": "repeated anchors",
    "Blocks": "tiles",
    "Number": "gradient",
    "Overflow": "low temperature",
    "TimesTemperature": "low temperature",
    "NoCheck": "parameters",
    "Unused": "learning",
    "Hidden": "state",
}


def diagnosis(name: str) -> CheckResult:
    """Return the one outcome that says more than that a law holds."""
    results = check_loss(f"{FILE}:{name}", seeds=[0])
    (found,) = [result for result in results if result.word or not result.passed]
    return found


def mistake(name: str) -> tuple[str, str]:
    """Return what is wrong with a loss, and the line that is marked."""
    text = FILE.read_text(encoding="utf-8")
    (kind,) = [node for node in ast.parse(text).body if getattr(node, "name", "") == name]
    own = "\n".join(text.split("\n")[kind.lineno : kind.end_lineno])
    (line,) = re.findall(r"^ *(.*\S) *# wrong$", own, re.MULTILINE)
    return ast.get_docstring(kind) or "", line


def row(name: str, found: CheckResult) -> str:
    """Return the row of a loss in the table, without what was measured."""
    said = re.sub(r" \([^()]*( apart from |: not finite)[^()]*\)$", "", found.detail)
    word = found.word or "FAIL"
    remedy = found.remedy.partition("; or decline it")[0].replace("|", "\\|")
    return f"| {mistake(name)[0]} | {word} {found.name}: {said} | {remedy} |\n"


def rows() -> str:
    return "".join(row(name, diagnosis(name)) for name in LAWS)


if __name__ == "__main__":
    page = frozen.with_table(PAGE.read_text(encoding="utf-8"), HEAD, rows())
    PAGE.write_text(page, encoding="utf-8")
