"""Losses with one mistake each, and the table of `docs/check-loss.md` that shows them.

`python tests/tools/wrong_losses.py` writes the table anew.
"""

import ast
import re
from pathlib import Path

from contrastbench.losses.laws import CheckResult, check_loss

FOLDER = Path(__file__).parents[1] / "losses" / "laws" / "wrong"
PAGE = Path(__file__).parents[2] / "docs" / "check-loss.md"
HEAD = "| mistake | line | `bench check-loss` says | try |\n| --- | --- | --- | --- |\n"
LAWS = {  # file -> the one law that names its mistake
    "typing_error": "runs",
    "no_return": "runs",
    "shapes": "runs",
    "temperature_zero": "runs",
    "holes_in_mean": "runs",
    "root": "runs",
    "top_k": "runs",
    "in_place": "in place",
    "mean_in_terms": "terms",
    "square": "terms",
    "randomness": "randomness",
    "device": "device",
    "detached": "detached",
    "sign": "sign",
    "negative_sign": "sign",
    "no_positives": "positives",
    "no_negatives": "negatives",
    "order": "permutation",
    "count": "holes",
    "exp_of_zero": "holes",
    "padding": "padding",
    "sum_of_positives": "repeated positives",
    "sum_of_anchors": "repeated anchors",
    "softmax_of_anchors": "repeated anchors",
    "blocks": "tiles",
    "number": "gradient",
    "overflow": "low temperature",
    "times_temperature": "low temperature",
    "no_check": "parameters",
    "unused": "learning",
}


def diagnosis(name: str) -> CheckResult:
    """Return the one outcome that says more than that a law holds."""
    results = check_loss(f"{FOLDER / name}.py:Mine", seeds=[0])
    (found,) = [result for result in results if result.word or not result.passed]
    return found


def mistake(name: str) -> tuple[str, str]:
    """Return what is wrong with a loss, and the line that is marked."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    (kind,) = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    (line,) = re.findall(r"^ *(.*\S) *# wrong$", text, re.MULTILINE)
    return ast.get_docstring(kind) or "", line


def row(name: str, found: CheckResult) -> str:
    """Return the row of a loss in the table, without what was measured."""
    said = re.sub(r" \([^()]*( apart from |: not finite)[^()]*\)$", "", found.detail)
    word = found.word or "FAIL"
    about, line = mistake(name)
    remedy = found.remedy.replace("|", "\\|")
    return f"| {about} | `{line}` | {word} {found.name}: {said} | {remedy} |\n"


def table() -> str:
    """Return the whole table."""
    return HEAD + "".join(row(name, diagnosis(name)) for name in LAWS)


if __name__ == "__main__":
    before, _, after = PAGE.read_text(encoding="utf-8").partition(HEAD)
    rest = after.partition("\n\n")[2]
    PAGE.write_text(f"{before}{table()}\n{rest}", encoding="utf-8")
