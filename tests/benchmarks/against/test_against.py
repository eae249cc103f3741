"""`bench check-loss --against`: what two losses are equal up to, and where they differ."""

import re
from math import sqrt
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from contrastbench.benchmarks.against import calls
from contrastbench.benchmarks.against.calls import (
    PAIRINGS,
    Batch,
    CalledLoss,
    convention,
    random_batch,
)
from contrastbench.benchmarks.against.compare import (
    PAIRS,
    TEMPERATURES,
    LossComparison,
    compare_on_batches,
    nearness,
)
from contrastbench.benchmarks.cli.check import PAIRING_NAMES
from contrastbench.errors import UserError
from contrastbench.losses import both_views, get_loss
from which_code import FILES, PAGE, RELEASED, Row, released, rows

OWN = '''
import math
import torch
import torch.nn.functional as F
from contrastbench.losses import ScoreLoss


def nt_xent(z1, z2, temperature=0.5, naive=False, hardest=1.0, first=1.0, within=1.0):
    """SimCLR's loss, written without this package, with some mistakes on demand."""
    n, u = len(z1), F.normalize(torch.cat([z1, z2]))
    cosine = u @ u.T
    own = torch.eye(2 * n, dtype=torch.bool)
    weight = torch.where(cosine.detach() > 0.99, hardest, 1.0)
    view = torch.arange(2 * n) // n
    weight = torch.where(view == view.unsqueeze(1), within * weight, weight)
    logits = (cosine / temperature + weight.clamp_min(1e-30).log()).masked_fill(own, -math.inf)
    positive = (cosine * first).roll(n, 1).diagonal() / temperature
    if naive:
        return -(positive.exp() / logits.exp().sum(dim=1)).log().mean()
    return (logits.logsumexp(dim=1) - positive).mean()


def doubled(z1, z2):
    return 2 * nt_xent(z1, z2)


def summed(z1, z2):
    return 2 * len(z1) * nt_xent(z1, z2)


def shifted(z1, z2):
    return nt_xent(z1, z2) - math.log(2 * len(z1) - 2)


def flipped(z1, z2):
    return -nt_xent(z1, z2)


def surrogate(z1, z2):
    value = nt_xent(z1, z2)
    return value + (value**2).detach()


def no_length(z1, z2):
    return nt_xent(z1, z2) + 0.1 * z1.norm(dim=1).mean()


def scaled(z1, z2, scale=20.0):
    return nt_xent(z1, z2, 1 / scale)


def by_class(z1, z2, labels):
    return labels.float().mean() * nt_xent(z1, z2)


class Module(torch.nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z1, z2):
        return nt_xent(z1, z2, self.temperature)


class Mine(ScoreLoss):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def terms(self, scores):
        pos, neg = scores.pos / self.temperature, scores.neg / self.temperature
        return -scores.mean_pos(scores.log_share(pos, neg))


made = Module(0.5)
'''


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def against(one: str, other: str, pairing: str = "both_views", **params: object) -> LossComparison:
    return compare_on_batches(CalledLoss(one, {}, pairing), CalledLoss(other, params, pairing))


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ("own.py:nt_xent", "equal"),
        ("own.py:Module", "equal"),
        ("own.py:made", "equal"),
        ("own.py:Mine", "equal"),
        ("own.py:doubled", "equal up to a factor 0.5"),
        ("own.py:summed", "equal up to a factor of the batch (0.125, 0.03125, 0.0078125)"),
        ("own.py:shifted", "equal up to a constant of the batch (1.7918, 3.4012, 4.8363)"),
        ("own.py:scaled", "equal with temperature=0.05 of the first"),
        ("own.py:flipped", "different: the sign is flipped"),
        ("own.py:surrogate", "different: the gradients are equal, the values are not"),
    ],
)
def test_losses_are_equal_up_to_what_is_named(other: str, verdict: str) -> None:
    found = against("infonce", other)
    assert found.verdict == verdict
    assert found.equal == verdict.startswith("equal")


def test_a_pull_on_lengths_is_a_difference() -> None:
    verdict = against("infonce", "own.py:no_length").verdict
    assert re.fullmatch(r"different: gradients by .+ % at N = \d+", verdict)


def test_an_overflow_of_float32_alone_is_a_difference() -> None:
    found = compare_on_batches(
        CalledLoss("infonce", {"temperature": 0.01}),
        CalledLoss("own.py:nt_xent", {"temperature": 0.01, "naive": True}),
    )
    assert found.verdict.startswith("different: in float32 alone, not finite at N = ")
    assert all(apart.gradient < 1e-12 for apart in found.given[torch.float64].values())


def test_labels_go_to_a_callable_that_takes_them() -> None:
    batch = random_batch(4, 0)
    leaves = batch.leaves(torch.float64)
    value = CalledLoss("own.py:by_class", {}, "same_class").make(torch.float64)(leaves)
    plain = CalledLoss("own.py:nt_xent", {}, "same_class").make(torch.float64)(leaves)
    assert value.item() == pytest.approx(0.5 * plain.item())


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_loss_is_equal_to_itself_in_each_pairing(pairing: str) -> None:
    found = against("adnce", "adnce", pairing)
    assert found.verdict == "equal"
    assert against("adnce", "infonce", pairing).equal is False


class Recorder(nn.Module):
    def forward(self, *args: object, **kwargs: object) -> Tensor:
        self.args, self.kwargs = args, kwargs
        return torch.zeros((), requires_grad=True)


def recorder(package: str, name: str = "Loss") -> Recorder:
    kind = type(name, (Recorder,), {"__module__": f"{package}.losses"})
    return kind()


def called(package: str, name: str, pairing: str) -> tuple[Recorder, Batch]:
    loss, batch = recorder(package, name), random_batch(4, 0)
    convention(loss)(loss, pairing, batch)
    return loss, batch


def test_pytorch_metric_learning_gets_embeddings_and_labels() -> None:
    loss, batch = called("pytorch_metric_learning", "Loss", "both_views")
    assert torch.equal(loss.args[0], batch.views)
    assert loss.args[1].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    loss, _ = called("pytorch_metric_learning", "Loss", "same_class")
    assert loss.args[1].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    loss, batch = called("pytorch_metric_learning", "Loss", "other_view")
    assert torch.equal(loss.args[0], batch.z1)
    assert torch.equal(loss.kwargs["ref_emb"], batch.z2)
    assert loss.kwargs["ref_labels"].tolist() == [0, 1, 2, 3]
    assert loss.kwargs["ref_labels"] is not loss.args[1]  # which would leave out the positives


def test_sentence_transformers_gets_columns() -> None:
    def embeddings(loss: Recorder) -> list[Tensor]:
        return [column["sentence_embedding"] for column in loss.args[0]]

    loss, batch = called("sentence_transformers", "RankingLoss", "whole_row")
    assert all(map(torch.equal, embeddings(loss), (batch.z1, batch.z2)))
    loss, batch = called("sentence_transformers", "BatchAllTripletLoss", "same_class")
    assert torch.equal(embeddings(loss)[0], batch.views)
    assert loss.args[1].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    loss, batch = called("sentence_transformers", "CoSENTLoss", "other_view")
    assert torch.equal(embeddings(loss)[0][5], batch.z1[1])
    assert torch.equal(embeddings(loss)[1][5], batch.z2[1])
    assert loss.args[1].tolist() == torch.eye(4).flatten().tolist()


def test_lightly_gets_two_views() -> None:
    loss, batch = called("lightly", "Loss", "both_views")
    assert all(map(torch.equal, loss.args, (batch.z1, batch.z2)))


def test_the_table_fits_a_screen(bench) -> None:
    code, out, _ = bench(
        *("check-loss", "infonce(temperature=0.2)"),
        *("--against", "own.py:nt_xent(temperature=0.2)"),
    )
    assert code == 0
    assert out.endswith("\nequal\n")
    assert max(map(len, out.splitlines())) <= 100
    assert "factor" not in out


def test_a_library_that_lacks_another_names_both(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "half_installed.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(own)
    said = (
        "^half_installed:X needs nowhere_at_all, which is not installed: pip install nowhere-at-all"
    )
    with pytest.raises(UserError, match=said):
        calls.foreign_loss("half_installed:X")


def test_a_loss_of_classes_is_prepared_for_the_classes_of_a_batch() -> None:
    """Both sides draw the same proxies; other losses of classes differ."""
    sides_of = [CalledLoss(name, {}, "same_class") for name in ("proxy_anchor", "cross_entropy")]
    assert compare_on_batches(sides_of[0], sides_of[0]).equal
    assert not compare_on_batches(*sides_of).equal


def by_loop(name: str, **params: float) -> list[float]:
    batch = random_batch(PAIRS, 0).leaves(torch.float64)
    get_loss(name, **params)(both_views(batch.z1, batch.z2)).backward()
    assert batch.z1.grad is not None
    assert batch.z2.grad is not None
    return torch.cat([batch.z1.grad, batch.z2.grad]).flatten().tolist()


@pytest.mark.parametrize(
    ("name", "params"), [("hcl", {"beta": 1.0}), ("siglip", {}), ("triplet", {"margin": 0.2})]
)
def test_it_is_the_best_cosine_of_a_loop(name: str, params: dict[str, float]) -> None:
    mine, found = by_loop(name, **params), []
    for temperature in TEMPERATURES:
        theirs = by_loop("infonce", temperature=temperature)
        dot = sum(a * b for a, b in zip(mine, theirs, strict=True))
        sizes = sum(a * a for a in mine), sum(b * b for b in theirs)
        found.append((dot / sqrt(sizes[0] * sizes[1]), temperature))
    cosine, temperature = max(found)
    assert nearness(name, params) == (pytest.approx(cosine, abs=6e-4), temperature)


def test_a_loss_at_its_limit_is_infonce() -> None:
    assert nearness("rince", {"temperature": 0.2, "q": 1e-6, "lam": 0.5}) == (1.0, 0.2)
    assert nearness("debiased", {"temperature": 0.2, "tau_plus": 0.3})[0] < 0.9


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: f"{row.package} {row.words}")
def test_a_row_says_what_the_command_says(row: Row) -> None:
    if not row.installed:
        pytest.skip(f"{row.package} {row.version} is not installed: pip install it")
    assert row.text() in PAGE.read_text(encoding="utf-8"), "run python tests/tools/which_code.py"


def test_a_difference_has_its_reason() -> None:
    for row in rows():
        (outcome,) = re.findall(r"` \| (equal|different|error)", row.line)
        assert row.why or outcome == "equal", row.line


def test_the_table_of_released_codes_is_that_of_the_golden_values() -> None:
    assert RELEASED + released() in PAGE.read_text(encoding="utf-8"), (
        "run python tests/tools/which_code.py"
    )


@pytest.mark.parametrize("file", sorted(FILES.glob("*.py")), ids=lambda file: file.name)
def test_the_page_shows_the_files_that_rows_need(file) -> None:
    assert f"```{{literalinclude}} ../tests/peers/{file.name}\n" in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_a_table_as_it_is_printed(bench) -> None:
    page = PAGE.read_text(encoding="utf-8")
    ((command, shown),) = re.findall(
        r"```bash\nbench ([^\n]*)\n```\n\n```\n(.*?)```", page, re.DOTALL
    )
    code, out, _ = bench(*command.split())
    assert code == 1
    assert out == shown


def test_the_page_names_every_pairing() -> None:
    assert tuple(calls.PAIRINGS) == PAIRING_NAMES
    assert all(f"`{name}`" in PAGE.read_text(encoding="utf-8") for name in PAIRING_NAMES)
