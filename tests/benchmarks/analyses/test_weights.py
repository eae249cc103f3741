"""Weights by the gradient against the formulas that papers print, and terms and scores by time."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from contrastbench.benchmarks.analyses.weights import COSINE_COUNT, COSINE_GRID, weights
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains.registry import declaration
from contrastbench.losses import get_loss
from contrastbench.losses.registry import LOSSES
from contrastbench.losses.spec import LossSpec
from made_records import made

S = [(k + 0.5) / COSINE_COUNT * 2 - 1 for k in range(COSINE_COUNT)]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def scaled(values: list[float]) -> list[float]:
    return [value / (sum(map(abs, values)) / len(values)) for value in values]


def close(found: torch.Tensor, expected: list[float]) -> None:
    assert found.tolist() == pytest.approx(scaled(expected), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 1.5, 3.0])
def test_renyi_weighs_hard_negatives_and_easy_positives(gamma: float) -> None:
    """RényiCL, section 5.2: e^{gamma f} of negatives, e^{(gamma - 1) f} of positives."""
    negative, positive = weights(get_loss("renyi", temperature=0.4, gamma=gamma))
    close(negative, [math.exp(gamma * s / 0.4) for s in S])
    close(positive, [math.exp((gamma - 1) * s / 0.4) for s in S])


def test_infonce_weighs_hard_negatives_and_hard_positives() -> None:
    negative, positive = weights(get_loss("infonce", temperature=0.4))
    close(negative, [math.exp(s / 0.4) for s in S])
    total = sum(math.exp(s / 0.4) for s in S)
    close(positive, [total / (total + math.exp(s / 0.4)) for s in S])


def test_adnce_bends_the_weights_around_mu() -> None:
    """ADNCE, equation 11 and Figure 3."""
    negative, _ = weights(get_loss("adnce", temperature=0.3, mu=0.1, sigma=0.5))
    close(negative, [math.exp(s / 0.3 - 0.5 * ((s - 0.1) / 0.5) ** 2) for s in S])


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "dar"])
def test_every_loss_of_scores_has_weights(name: str) -> None:
    negative, positive = weights(get_loss(name))
    assert negative.shape == positive.shape == COSINE_GRID.shape
    assert negative.isfinite().all()
    assert positive.isfinite().all()
    assert negative.abs().mean().item() == pytest.approx(1)
    if name != "dcl_w":  # it pushes away those whose exponential is above twice the mean
        assert (positive >= 0).all(), "positives are pulled near"


def test_weighted_decoupled_learning_pushes_the_easiest_positives_away() -> None:
    """Yeh et al. 2022: a weight is 2 less the exponential over its mean."""
    _, positive = weights(get_loss("dcl_w", sigma=0.5))
    easy = [math.exp(s / 0.5) for s in S]
    close(positive, [2 - x / (sum(easy) / len(easy)) for x in easy])
    assert min(positive) < 0 < max(positive)


def test_weights_are_written_for_each_loss_and_score(bench, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    losses = ["--loss", "adnce", "--loss", "infonce + 0.5*mean_variance", "--loss", "mine.py:Mine"]
    code, found, error = bench("analyse", "weights", *losses)
    assert (code, error) == (0, "")
    assert found.split() == [f"results/analyses/weights/weights.{kind}" for kind in ("csv", "svg")]
    rows = read(Path(found.split()[0]))
    assert [row["loss"] for row in rows[::COSINE_COUNT]] == losses[1::2]
    assert [float(row["weight_of_negative"]) for row in rows[-COSINE_COUNT:]] == pytest.approx(
        [1] * 100
    )
    code, _, error = bench("analyse", "weights", "--loss", "infonce + dar")
    assert (code, "dar does not depend on scores alone" in error) == (2, True)


OWN = """
from contrastbench.losses import Scores, ScoreLoss


class Mine(ScoreLoss):
    def terms(self, scores: Scores):
        return scores.mean_neg(scores.neg).squeeze(1) - scores.mean_pos(scores.pos)
"""


def test_terms_of_all_losses_are_followed_in_each_training(bench) -> None:
    losses = ["--loss", "infonce", "--loss", "infonce + 0.5*dar"]
    words = ["--domain", "graph", "--tiny", "--recipe", "epochs=2", "--output", "out"]
    code, found, error = bench("analyse", "terms", *words, *losses)
    assert (code, error) == (0, "")
    assert found.split() == ["out/terms.csv", "out/terms.svg"]
    rows = read(Path("out/terms.csv"))
    infonce, dar = "InfoNCE(temperature=0.5)", "DAR(form='chain', reduction='mean')"
    half = len(rows) // 2
    for label, part in (("infonce", rows[:half]), ("infonce + 0.5*dar", rows[half:])):
        assert {(row["loss"], row["term"]) for row in part} == {(label, infonce), (label, dar)}
        weight = 0.5 if "dar" in label else 0
        assert {row["weight"] for row in part if row["term"] == dar} == {f"{weight:.1f}"}
    first, second = rows[:2], rows[half : half + 2]
    assert [row["value"] for row in first] == [row["value"] for row in second], "the same start"
    assert rows[2]["value"] != rows[half + 2]["value"]


def test_a_loss_of_classes_is_followed_in_the_training_of_another(bench) -> None:
    pytest.importorskip("torchvision")
    words = ["--domain", "image", "--tiny", "--recipe", "pairing=supervised", "--output", "out"]
    code, _, error = bench(
        "analyse", "terms", *words, "--loss", "infonce", "--loss", "proxy_anchor"
    )
    assert code == 0, error
    values = {float(row["value"]) for row in read(Path("out/terms.csv"))}
    assert len(values) > 2
    code, _, error = bench(
        "analyse", "terms", "--domain", "image", "--tiny", "--loss", "proxy_anchor"
    )
    assert (code, "needs class labels" in error) == (2, True), error


def test_following_terms_gives_what_the_training_minimises(bench) -> None:
    words = ["--domain", "graph", "--tiny", "--recipe", "epochs=2"]
    code, _, _ = bench("analyse", "terms", *words, "--loss", "infonce + 0.5*dar", "--output", "out")
    assert code == 0
    rows = read(Path("out/terms.csv"))
    total = sum(float(row["weight"]) * float(row["value"]) for row in rows) / (len(rows) / 2)
    code, found, _ = bench("run", *words, "--loss", "infonce + 0.5*dar", "--json")
    by_epoch = json.loads(found)["details"]["loss_by_epoch"]
    assert total == pytest.approx(sum(by_epoch) / len(by_epoch), rel=1e-4)


def test_a_learning_curve_is_of_records(bench) -> None:
    words = ["--domain", "tabular", "--tiny", "--recipe", "epochs=3", "--output", "out"]
    losses = ["--loss", "infonce", "--loss", "adnce"]
    code, found, _ = bench("analyse", "learning-curve", *words, *losses, "--seeds", "0,1")
    assert code == 0
    rows = read(Path("out/learning-curve.csv"))
    assert [(row["loss"], row["epoch"], row["n"]) for row in rows] == [
        (loss, str(epoch), "2") for loss in ("infonce", "adnce") for epoch in range(4)
    ]
    assert rows[0]["accuracy_mean"] == rows[4]["accuracy_mean"], "the untrained encoder"
    records = list(Path("results/runs").rglob("*.json"))
    assert len(records) == 6
    written = {path: path.stat().st_mtime_ns for path in records}
    again = bench(
        "analyse", "learning-curve", *words, *losses, "--seeds", "0,1", "--with", "every=2"
    )
    assert again[:2] == (0, found)
    assert [row["epoch"] for row in read(Path("out/learning-curve.csv"))] == ["0", "2", "3"] * 2
    assert written == {path: path.stat().st_mtime_ns for path in Path("results").rglob("*.json")}


def test_a_learning_curve_is_of_one_data(bench) -> None:
    """A seed of a file that has been edited since is not averaged with one of today's."""
    words = ["--domain", "tabular", "--tiny", "--recipe", "epochs=1", "--seeds", "0,1"]
    recipe = {**declaration("tabular").tiny, "epochs": 1}
    work = Experiment("tabular", "digits-table", LossSpec("infonce"), recipe)
    for one in (work, replace(work, loss=LossSpec("none"))):
        made(Path("results"), one, 0, data_hash="1" * 64, metrics={"accuracy": 1.0})
    words += ["--loss", "infonce", "--output", "out"]
    code, _, error = bench("analyse", "learning-curve", *words)
    assert code == 0, error
    first, last = read(Path("out/learning-curve.csv"))
    assert float(first["accuracy_mean"]) > 10
    assert float(last["accuracy_mean"]) > 10


def test_a_learning_curve_needs_a_training(bench) -> None:
    words = ["--domain", "tabular", "--tiny", "--recipe", "epochs=0", "--loss", "infonce"]
    code, _, error = bench("analyse", "learning-curve", *words)
    assert (code, error) == (
        2,
        "bench: this recipe trains nothing: give it epochs of at least 1\n",
    )
