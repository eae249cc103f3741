"""What a reader of a loss's files sees is what Python runs: every letter of Unicode is tried."""

import random
import sys
from collections.abc import Callable
from unicodedata import normalize

import pytest

from contrastbench.benchmarks.submission.loss_files import check_loss_files, is_unseen
from contrastbench.errors import UserError
from counts import dice, times

UNSEEN = r"[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u2800]"
PLAIN = "abc \u03c4\u03bb\u00e9\u4e2d\u0915\u093f\u05d0\U0001f600"


def test_what_unicode_calls_ignorable_is_refused(found: Callable[[str], None]) -> None:
    regex = pytest.importorskip("regex")
    unseen = regex.compile(UNSEEN)
    wrong = [k for k in range(sys.maxunicode + 1) if unseen.match(chr(k)) and not is_unseen(chr(k))]
    assert wrong == []
    assert not any(map(is_unseen, PLAIN))
    found(f"bundles: {sys.maxunicode + 1} letters: each that nobody sees is refused")


@pytest.mark.parametrize("form", ["{}", "import {}", "x.{}", "f'{{{}}}'", "x = 'τ'; {}"])
def test_a_word_that_python_reads_as_another_is_refused(form: str) -> None:
    """Names are normalised (PEP 3131): who looks for `exec` finds none of these."""
    twins: dict[str, list[str]] = {}
    for letter in map(chr, range(128, sys.maxunicode + 1)):
        if f"a{letter}".isidentifier() and (plain := normalize("NFKC", letter)) in {*"exec"}:
            twins.setdefault(plain, []).append(letter)
    for k, plain in enumerate("exec"):
        for letter in twins[plain]:
            word = f"{'exec'[:k]}{letter}{'exec'[k + 1 :]}"
            with pytest.raises(UserError, match="hides code as Python reads exec"):
                check_loss_files({"a.py": form.format(word)})
    check_loss_files({"a.py": form.format("τ") + "  # the ℓ² norm in ℝ"})


NAMES = ("a.py", "a/b.py", "A.py", "a", "a/b/c.py", "\u212a.py", "k.py", "K/x.py", "b", "..", "./a")
LINES = (
    "# coding: {}",
    "#!/x\n# -*- coding: {} -*-",
    "'''{}'''",
    "x = 1  # {}",
    "# fileencoding={}",
)
WORDS = ("utf-8", "latin-1", "utf-7", "unicode_escape", "rot13", "\u00ad", "\ufe0f", "\f", "\u03c4")


def drawn(rng: random.Random) -> dict[str, str]:
    names = rng.sample(NAMES, rng.randrange(1, 4))
    return {name: rng.choice(LINES).format(rng.choice(WORDS)) for name in names}


def test_files_that_are_taken_are_read_alike_by_python_and_people(
    found: Callable[[str], None],
) -> None:
    """A second reading by other means: Python's own, and a folder that knows no case."""
    rng, taken, trials = dice("loss files"), 0, times(3000)
    for _ in range(trials):
        files = drawn(rng)
        try:
            check_loss_files(files)
        except UserError:
            continue
        taken += 1
        folded = [name.casefold().replace("\u212a", "k") for name in files]
        assert len({*folded}) == len(folded)
        assert not [a for a in folded for b in folded if b.startswith(f"{a}/")]
        for name, text in files.items():
            assert not name.startswith(".")
            as_bytes, as_text = (compile(one, name, "exec") for one in (text.encode(), text))
            assert (as_bytes.co_code, as_bytes.co_consts) == (as_text.co_code, as_text.co_consts)
            assert text.replace("\n", "").isprintable()
    assert 0 < taken < trials
    found(f"bundles: {trials} sets of files of a loss, {taken} taken, each as it is read")
