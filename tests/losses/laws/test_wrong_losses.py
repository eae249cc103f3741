"""Each wrong loss has one diagnosis, which names its mistake and stands in the docs."""

import ast
from pathlib import Path

import pytest

from contrastbench.losses.laws import battery, check_loss
from wrong_losses import FILE, HEAD, LAWS, PAGE, diagnosis, mistake, row


@pytest.mark.parametrize("name", LAWS)
def test_a_mistake_has_one_diagnosis(name: str) -> None:
    found = diagnosis(name)
    assert found.name == LAWS[name]
    assert found.word == ("remark" if name in ("NoNegatives", "TimesTemperature") else "")
    assert row(name, found) in PAGE.read_text(encoding="utf-8"), (
        "run python tests/tools/wrong_losses.py"
    )


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law == "runs"])
def test_what_raises_or_is_not_finite_has_its_line(name: str) -> None:
    found = diagnosis(name)
    assert "wrong.py:" in found.place
    assert mistake(name)[1] in found.place or name in ("NoReturn", "Root"), (
        "of these the line of terms"
    )


def test_the_table_has_every_wrong_loss_and_no_other() -> None:
    kinds = [node.name for node in ast.parse(FILE.read_text()).body if hasattr(node, "name")]
    assert ["Plain", *LAWS] == kinds
    _, _, rows = PAGE.read_text(encoding="utf-8").partition(HEAD)
    assert rows.partition("\n\n")[0].count("\n") + 1 == len(LAWS)


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("(0.5 - scores.pos).relu() + scores.mean_neg(scores.neg)", ""),
        ("(scores.mean_neg(scores.neg) - scores.pos - 0.2).relu()", ""),  # flat where they align
        (
            "scores.mean_neg(scores.neg) - scores.pos.round()",
            "positives: the gradient is zero on all batches that were drawn",
        ),
    ],
)
def test_a_flat_gradient_is_not_called_detached(code: str, detail: str, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from contrastbench.losses import ScoreLoss\n\nclass Mine(ScoreLoss):\n"
        f"    def terms(self, scores):\n        return scores.mean_pos({code})\n"
    )
    failed = [one.detail for one in check_loss(f"{own}:Mine") if not one.passed]
    assert failed == ([detail] if detail else [])


def test_terms_know_samples_and_are_called_as_a_training_calls_them(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from contrastbench.losses import ScoreLoss\n"
        "from contrastbench.losses.ranges import Whole, declare\n\nclass Ids(ScoreLoss):\n"
        "    def terms(self, scores):\n"
        "        same = scores.anchor_id[:, None] == scores.key_id\n"
        "        own = scores.neg.masked_fill(same, -float('inf'))\n"
        "        own = own.exp().sum(1) / scores.count.squeeze(1)\n"
        "        return own - scores.mean_pos(scores.pos)\n\nclass Before(Ids):\n"
        "    def forward(self, contrast):\n        self.ids = contrast.anchor_id\n"
        "        return super().forward(contrast)\n\n    def terms(self, scores):\n"
        "        return super().terms(scores) + 0 * self.ids[scores.rows]\n"
        "\nclass Changes(Before):\n    def terms(self, scores):\n"
        "        scores.neg.mul_(1)\n        return super().terms(scores)\n"
        "\nclass Counts(Before):\n    def __init__(self, k: int = 5) -> None:\n"
        "        super().__init__()\n        self.k = self.checked('k', k)\n"
        "    ranges = declare(k=Whole(low=1))\n"
    )
    for name, failed in (("Ids", []), ("Before", []), ("Counts", []), ("Changes", ["in place"])):
        found = check_loss(f"{own}:{name}", [0])
        assert [one.name for one in found if not one.passed] == failed, name


def test_a_loss_of_views_depends_on_both_and_may_have_the_gradient_of_normalize(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "import torch.nn.functional as F\n\ndef one(z, labels):\n    return z.var()\n\n"
        "def two(z1, z2):\n    scores = F.normalize(z1) @ F.normalize(z2).T\n"
        "    return -scores.log_softmax(1).diagonal().mean()\n"
    )
    (failed,) = [one for one in check_loss(f"{own}:one") if not one.passed]
    assert (failed.name, "view 2 changes nothing" in failed.detail) == ("detached", True)
    found = {one.name: one for one in check_loss(f"{own}:two")}
    assert all(one.passed for one in found.values())
    assert found["zero rows"].word == "remark"


def test_a_term_without_negatives_needs_no_remark_in_a_sum() -> None:
    results = check_loss(f"infonce + 0.5*{FILE}:NoNegatives", seeds=[0])
    assert [result for result in results if result.word or not result.passed] == []


def test_the_page_on_own_losses_shows_the_first_laws_and_their_number() -> None:
    page = PAGE.with_name("own-loss.md").read_text(encoding="utf-8")
    assert f"\n{len(battery.LAWS)} of {len(battery.LAWS)} checks passed\n" in page
    for law in battery.LAWS[:2]:
        said = (law.check.__doc__ or "").split("\n")[0]
        assert f"\npass      {law.name:18}  {said}\n" in page
