"""Compare losses of libraries with ours, and write the tables of `docs/which-code.md`.

`python tests/which_code.py` writes anew each row whose package is installed in the version that the
row names; all other rows stay as they are.
"""

import json
import os
import shlex
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from contrastbench.benchmarks.against.calls import CalledLoss
from contrastbench.benchmarks.against.compare import compare_on_batches
from contrastbench.benchmarks.cli.arguments import parse_loss, parse_pairs
from contrastbench.errors import UserError

TESTS = Path(__file__).parent
FILES = TESTS / "peers"  # what a reader writes to run some rows
PAGE = TESTS.parent / "docs" / "which-code.md"
GOLDEN = TESTS / "losses" / "golden.json"
HEAD = (
    "| package | command, after `bench check-loss` | outcome | why |\n| --- | --- | --- | --- |\n"
)
RELEASED = "| code | place | ours | outcome |\n| --- | --- | --- | --- |\n"
METRIC = "pytorch_metric_learning.losses"
SENTENCE = "sentence_transformers.sentence_transformer.losses"


@dataclass(frozen=True)
class Row:
    """A comparison with a loss of a package."""

    package: str  # as pip names it
    version: str
    words: str
    why: str = ""

    @property
    def key(self) -> str:
        """Return the cells by which the row is found in the table."""
        return f"| {self.package} {self.version} | `{self.words}` |"

    @property
    def installed(self) -> bool:
        """Return whether the package is here in this version."""
        try:
            return version(self.package) == self.version
        except PackageNotFoundError:
            return False

    def text(self) -> str:
        """Return the row with its outcome."""
        return f"{self.key} {outcome(self.words)} | {self.why} |\n"


def rows() -> Iterator[Row]:
    """Yield all rows of the table."""
    for words, why in (
        ("infonce --against lightly.loss:NTXentLoss", ""),
        ("decoupled --against lightly.loss:DCLLoss", "The defaults differ."),
        ("dcl_w --against lightly.loss:DCLWLoss", "The defaults differ."),
        ("macl --against lightly.loss:MACLLoss", "The defaults differ."),
    ):
        yield Row("lightly", "1.6.0", words, why)
    wrong = "It adds two logarithms, one of each view's negatives; the paper has one of their sum."
    yield Row("lightly", "1.5.20", "infonce --against lightly.loss:NTXentLoss")
    for loss in (
        "decoupled --against lightly.loss:DCLLoss",
        "dcl_w --against lightly.loss:DCLWLoss",
    ):
        first, _, other = loss.partition(" ")
        yield Row("lightly", "1.5.20", f"{first} --set temperature=0.1 {other}", wrong)
    by_class = " --pairing same_class"
    for words, why in (
        (f"infonce --against {METRIC}:NTXentLoss", "The defaults differ."),
        (f"infonce --against {METRIC}:NTXentLoss --pairing whole_row", "The defaults differ."),
        (f"infonce --against {METRIC}:NTXentLoss{by_class}", "The defaults differ."),
        (f"supcon --set temperature=0.1 --against {METRIC}:SupConLoss{by_class}", ""),
        (f"circle --set margin=0.4 --set gamma=80 --against {METRIC}:CircleLoss{by_class}", ""),
        (f"lifted --against {METRIC}:GeneralizedLiftedStructureLoss{by_class}", ""),
        (
            f"multi_similarity --against {METRIC}:MultiSimilarityLoss{by_class}",
            "Ours has the paper's miner; there it is an object of its own.",
        ),
        (
            f"multi_similarity --set epsilon=2 --against {METRIC}:MultiSimilarityLoss{by_class}",
            "With epsilon=2 the miner keeps all pairs.",
        ),
        (
            f"triplet --set margin=0.05 --against {METRIC}:TripletMarginLoss{by_class}",
            "Its default mean leaves out triplets without loss.",
        ),
        (
            f"triplet --set margin=0.05 --against metric_learning.py:AllTriplets{by_class}",
            "Its mean over all triplets is ours.",
        ),
        (
            f"npair --against {METRIC}:NPairsLoss{by_class}",
            "It takes inner products, and one pair of each class.",
        ),
    ):
        yield Row("pytorch-metric-learning", "2.9.0", words, why)
    for words, why in (
        (
            f"infonce --against {SENTENCE}:MultipleNegativesRankingLoss --pairing whole_row",
            "Its scale is 20.",
        ),
        (
            f"clip --against {SENTENCE}:MultipleNegativesSymmetricRankingLoss --pairing whole_row",
            "Its scale is 20; ours begins at 0.07 and is learned.",
        ),
        (
            f"infonce --set temperature=0.05 --against {SENTENCE}:MultipleNegativesRankingLoss "
            "--pairing other_view",
            "In GraphCL's pairing the positive is not in the denominator.",
        ),
        (
            f"triplet --set margin=5 --against {SENTENCE}:BatchAllTripletLoss{by_class}",
            "It takes distances of embeddings as they are; ours have length 1.",
        ),
        (f"cosent.py:formula --against {SENTENCE}:CoSENTLoss --pairing whole_row", ""),
        (
            f"cosent.py:inverted --against {SENTENCE}:CoSENTLoss --pairing whole_row",
            "Release 5.1.0 prints this formula in its docstring, beside the same code.",
        ),
    ):
        yield Row("sentence-transformers", "6.2.0", words, why)
    broken = "Its code sums a vector over a second dimension."
    for words, why in (
        ("infonce --against 'GCL.losses:InfoNCE(tau=0.5)'", ""),
        ("debiased --against 'GCL.losses:DebiasedInfoNCE(tau=0.5)'", broken),
        ("hcl --against 'GCL.losses:HardnessInfoNCE(tau=0.5)'", broken),
    ):
        yield Row("PyGCL", "0.1.2", words, why)


def outcome(words: str) -> str:
    """Return the last line that `bench check-loss` prints."""
    first, *rest = shlex.split(words)
    given: dict[str, list[str]] = {}
    for option, value in zip(rest[::2], rest[1::2], strict=True):
        given.setdefault(option, []).append(value)
    pairing = given.get("--pairing", ["both_views"])[0]
    other = parse_loss(given["--against"][0], "--against")
    sides = [
        CalledLoss(name, params, pairing)
        for name, params in (
            (first, parse_pairs("--set", given.get("--set"))),
            (other.name, other.params),
        )
    ]
    with here(FILES), stubs(words), warnings.catch_warnings(action="ignore"):
        try:
            return compare_on_batches(*sides).verdict
        except UserError as error:
            return f"error: {error}"


@contextmanager
def here(folder: Path) -> Iterator[None]:
    """Work in a folder within."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Stub(types.ModuleType):
    """An empty module that has any name, but none of Python's own."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@contextmanager
def stubs(words: str) -> Iterator[None]:
    """Stand empty modules in for packages that PyGCL imports and its losses do not use."""
    needed = ("dgl", "torch_scatter", "torch_sparse") if "GCL." in words else ()
    names = [name for name in needed if name not in sys.modules]
    sys.modules.update({name: Stub(name) for name in names})
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def released() -> str:
    """Return the table of released codes, whose values are in golden.json."""
    lines = []
    for group in json.loads(GOLDEN.read_text())["released"]:
        cases = group["cases"]
        words = "equal" if "value" in cases[0] else "gradients equal; the code's value is another"
        place = group["place"].partition(" (")[0].replace("|", "\\|")
        state = group.get("release") or group["commit"][:7]
        code = f"[{group['repository'].rpartition('/')[2]}]({group['repository']}) {state}"
        lines.append(
            f"| {code} | {place} | `{group['loss'].rpartition(':')[2]}`, {group['pairing']} "
            f"| {words}, {len(cases)} settings |\n"
        )
    return RELEASED + "".join(lines)


def table(page: str) -> str:
    """Return the table of packages: rows of what is installed anew, others as in the page."""
    lines = []
    for row in rows():
        old = [line for line in page.splitlines(keepends=True) if line.startswith(row.key)]
        lines.append(row.text() if row.installed else "".join(old))
    return HEAD + "".join(lines)


def with_table(page: str, head: str, text: str) -> str:
    """Return the page with the table under a head replaced."""
    before, _, after = page.partition(head)
    return f"{before}{text}\n{after.partition(chr(10) * 2)[2]}"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    page = with_table(page, HEAD, table(page))
    PAGE.write_text(with_table(page, RELEASED, released()), encoding="utf-8")
