"""Tests of the analyses.

Their formulas against plain loops, what they write, and a user's mistakes in one line.
"""

import csv
from pathlib import Path

import pytest
import torch

from contrastbench.benchmarks.analyses import false_negatives, output, score_losses, scores, terms
from contrastbench.benchmarks.analyses.trainer import Trainer, open_trainer
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.registry import declaration
from contrastbench.errors import UserError
from contrastbench.losses import LOSSES, both_views, get_loss, other_view, query_key, whole_row
from contrastbench.losses.base import ScoreLoss, block_scores
from contrastbench.losses.spec import LossSpec

GRAPH = ["--domain", "graph", "--tiny"]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def trainer_of(domain: str) -> Trainer:
    about = declaration(domain)
    experiment = Experiment(domain, about.default, LossSpec("none"), TINY[domain])
    return open_trainer(experiment, 0, Options(device="cpu", threads=1))


def views(n: int = 6, dim: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(2, n, dim, generator=rng, dtype=torch.float64).unbind()


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def moments_by_loop(negatives: list[list[float]], positives: list[float]) -> list[float]:
    variances = [mean([(s - mean(row)) ** 2 for s in row]) for row in negatives]
    return [mean([mean(row) for row in negatives]), mean(variances), mean(positives)]


@pytest.mark.parametrize("pairing", [other_view, whole_row, query_key])
def test_moments_of_one_view_against_the_other(pairing) -> None:
    one, two = views()
    found = scores.moments(pairing(one, two))
    negatives = [[cosine(one[i], two[j]) for j in range(6) if j != i] for i in range(6)]
    expected = moments_by_loop(negatives, [cosine(one[i], two[i]) for i in range(6)])
    assert found.tolist() == pytest.approx(expected, abs=1e-12), (
        "the positive is no negative, in no pairing"
    )


def test_moments_of_both_views_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "ANCHORS_AT_ONCE", 5)
    one, two = views()
    z = torch.cat([one, two])
    negatives = [[cosine(z[i], z[j]) for j in range(12) if j % 6 != i % 6] for i in range(12)]
    expected = moments_by_loop(negatives, [cosine(z[i], z[(i + 6) % 12]) for i in range(12)])
    assert scores.moments(both_views(one, two)).tolist() == pytest.approx(expected, abs=1e-12)


def share_by_loop(z: torch.Tensor, y: list[int], weight) -> float:
    """Mean share of the weight on false negatives in `both_views`."""
    n, rows = len(y), []
    for i in range(2 * n):
        others = [j for j in range(2 * n) if j % n != i % n]
        weights = {j: weight(cosine(z[i], z[j])) for j in others}
        rows.append(
            sum(w for j, w in weights.items() if y[j % n] == y[i % n]) / sum(weights.values())
        )
    return mean(rows)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_weight_of_false_negatives_is_a_softmax_for_infonce_and_reweighted_for_adnce(
    temperature: float,
) -> None:
    one, two = views()
    y = [0, 0, 1, 1, 1, 2]
    contrast = false_negatives.contrast_by_class(both_views(one, two), torch.tensor(y))
    found = block_scores(contrast, slice(None))
    false = contrast.same_class & ~found.hole
    tilt = lambda s: torch.tensor(s / temperature).exp().item()  # noqa: E731
    bell = lambda s: tilt(s) * torch.tensor(-0.5 * ((s - 0.3) / 0.5) ** 2).exp().item()  # noqa: E731
    for loss, weight in (("infonce", tilt), ("adnce", bell)):
        params = {"mu": 0.3, "sigma": 0.5} if loss == "adnce" else {}
        share = false_negatives.weighted_share(
            get_loss(loss, temperature=temperature, **params), found, false
        )
        assert float(share) == pytest.approx(
            share_by_loop(torch.cat([one, two]), y, weight), rel=1e-5
        )


def test_a_loss_that_keeps_all_false_negatives_is_the_loss() -> None:
    contrast = false_negatives.contrast_by_class(
        other_view(*views()), torch.tensor([0, 0, 1, 1, 1, 2])
    )
    for name in ("infonce", "rmlcpc", "infonce + 0.5*adnce"):
        thinned = false_negatives.Thinned(get_loss(name), 1.0, 0)
        assert thinned(contrast).item() == pytest.approx(get_loss(name)(contrast).item(), abs=1e-12)
        assert thinned.shares[0][1].item() == pytest.approx((2 * 1 + 3 * 2 + 0) / 6 / 5, abs=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_an_analysis_of_scores_takes_a_loss_as_it_trains_or_not_at_all(name: str) -> None:
    ours, trained = get_loss(name), get_loss(name)
    try:
        score_losses.check_score_loss(ours)
    except UserError:
        assert name in {"clip", "gor", "isogclr", "sogclr"} or not isinstance(trained, ScoreLoss)
        return
    for seed in (0, 1):  # a loss may remember the batch before
        contrast = other_view(*views(seed=seed))
        found = score_losses.loss_of_scores(ours, block_scores(contrast, slice(None), ours.hole))
        assert found.item() == pytest.approx(trained(contrast).item(), abs=1e-9)


def test_a_training_with_a_share_of_false_negatives_starts_with_a_new_loss(tmp_path: Path) -> None:
    there, loss = trainer_of("graph"), LossSpec("siglip")

    def measured(*kept: float) -> list[tuple[object, ...]]:
        points: list[tuple[object, ...]] = []
        with pytest.MonkeyPatch.context() as patch:
            train = false_negatives.train_point
            patch.setattr(
                false_negatives, "train_point", lambda *of: points.append(train(*of)) or points[-1]
            )
            list(false_negatives.analyse(there, loss, kept, [0.5], tmp_path))
        return points

    assert measured(0, 1)[1] == measured(1)[0]


@pytest.mark.parametrize("name", ["siglip", "sogclr"])
def test_a_term_is_followed_as_if_its_training_were_the_only_one(name: str, tmp_path: Path) -> None:
    """No training moves the loss of another one, and a look changes none."""
    there, own = trainer_of("tabular"), LossSpec(name)
    expected = train(there.domain, there.prepared(get_loss(name)))[1].loss_by_epoch
    for number, methods in enumerate(([own, LossSpec("infonce")], [LossSpec("infonce"), own])):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = read(next(iter(terms.analyse(there, methods, folder))))
        found = [
            float(row["value"]) for row in rows if (row["loss"], row["weight"]) == (name, "1.0")
        ]
        assert mean(found) == pytest.approx(expected[0], rel=1e-5)


def test_a_loss_that_keeps_no_false_negatives_meets_true_ones_alone() -> None:
    one, two = views()
    y = [0, 0, 1, 1, 1, 2]
    thinned = false_negatives.Thinned(get_loss("infonce", temperature=0.5), 0.0, 0)
    found = thinned(false_negatives.contrast_by_class(both_views(one, two), torch.tensor(y)))
    z, terms = torch.cat([one, two]), []
    for i in range(12):
        pos = torch.tensor(cosine(z[i], z[(i + 6) % 12]) / 0.5).exp()
        neg = sum(
            torch.tensor(cosine(z[i], z[j]) / 0.5).exp() for j in range(12) if y[j % 6] != y[i % 6]
        )
        terms.append(-(pos / (pos + neg)).log().item())
    assert found.item() == pytest.approx(mean(terms), abs=1e-6)
    assert thinned.shares[0].tolist() == [0, 0]


def test_a_kept_share_of_false_negatives_is_a_share() -> None:
    y = torch.arange(100) % 2
    contrast = false_negatives.contrast_by_class(other_view(*views(100)), y)
    shares = []
    for kept in (0.5, 1.0):
        thinned = false_negatives.Thinned(get_loss("infonce"), kept, 0)
        thinned(contrast)
        shares.append(thinned.shares[0][1].item())
    # of 49 false negatives beside 50 true ones 24.5 are kept
    assert shares == pytest.approx([24.5 / 74.5, 49 / 99], abs=0.02)


def test_an_anchor_without_true_negatives_is_an_error() -> None:
    contrast = false_negatives.contrast_by_class(
        other_view(*views()), torch.zeros(6, dtype=torch.long)
    )
    with pytest.raises(UserError, match="no true negatives in its batch"):
        false_negatives.Thinned(get_loss("infonce"), 0.0, 0)(contrast)


@pytest.mark.parametrize("domain", ["graph", "image", "tabular"])
def test_classes_of_a_batch_are_those_of_its_samples(domain: str) -> None:
    trainer = trainer_of(domain)
    d = trainer.domain
    y = torch.cat([d.classes(batch) for batch in d.batches(0)])
    x, scored = d.embeddings(d.model())
    assert len(x) == len(scored)
    if domain == "graph":
        assert torch.equal(y, scored), (
            "graphs are trained on in the order in which they are embedded"
        )
    if domain == "image":
        pool = d.pool.splits[0]
        assert all(torch.equal(d.classes(b), pool.labels[b.rows]) for b in d.batches(0))
        assert torch.equal(scored, d.splits["test"].labels)
    if domain == "tabular":
        order = {
            tuple(row): int(label) for row, label in zip(d.train.x.tolist(), d.train.y, strict=True)
        }
        rows = [row for batch in d.batches(0) for row in d.views(batch)[0].tolist()]
        assert [order[tuple(row)] for row in rows] == y.tolist()


TINY = {
    "graph": {"limit": 60, "batch_size": 20, "folds": 2, "epochs": 1},
    "image": {"limit": 80, "batch_size": 16, "epochs": 1},
    "tabular": {"limit": 80, "batch_size": 16, "epochs": 1, "views": "none"},
}


def test_scores_writes_a_row_for_each_step_and_loss_and_a_plot(bench) -> None:
    words = [
        "--loss",
        "infonce(temperature=0.2)",
        "--loss",
        "infonce",
        "--recipe",
        "epochs=2",
        "--output",
        "out",
    ]
    code, found, error = bench("analyse", "scores", *GRAPH, *words)
    assert (code, error) == (0, "")
    assert found.splitlines() == ["out/scores.csv", "out/scores.svg"]
    rows = read(Path("out/scores.csv"))
    steps = len(rows) // 2
    assert [row["loss"] for row in rows] == ["infonce(temperature=0.2)"] * steps + [
        "infonce"
    ] * steps
    assert [int(row["step"]) for row in rows[:steps]] == list(range(1, steps + 1))
    first, second = ([rows[i][name] for name in scores.MOMENTS] for i in (0, steps))
    assert first == second, "both begin with the same model and batch"
    assert rows[1] != {**rows[steps + 1], "loss": rows[1]["loss"]}
    assert "<svg" in Path("out/scores.svg").read_text()


def test_a_csv_has_no_formulas_and_is_written_whole(tmp_path: Path) -> None:
    class Torn:
        def savefig(self, *_: object, **__: object) -> None:
            raise MemoryError

    (tmp_path / "a.csv").write_text("old")
    (tmp_path / "a.svg").write_text("old")
    rows = [("=cmd", -1, -0.5)]
    with pytest.raises(MemoryError):
        list(output.write_results(tmp_path, "a", ("loss", "@x", "y"), rows, Torn()))  # type: ignore[arg-type]
    assert (tmp_path / "a.csv").read_text() == "loss,'@x,y\n'=cmd,-1,-0.5\n"
    assert (tmp_path / "a-1.svg").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3, "a-1.csv as well, and no half of a plot"


def test_numbers_of_before_are_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (1, 1, 2, 3):
        output.write_csv(tmp_path, "a", ("loss",), [(value,)])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.csv": "loss\n3\n",
        "a-1.csv": "loss\n1\n",
        "a-2.csv": "loss\n2\n",
    }
    assert capsys.readouterr().err.splitlines() == [
        f"{tmp_path}/a.csv of before is a-{k}.csv now" for k in (1, 2)
    ]


def test_false_negatives_writes_each_share_and_temperature(bench) -> None:
    words = [
        "--loss",
        "infonce",
        "--with",
        "kept=0,1",
        "--with",
        "temperatures=0.1,1",
        "--recipe",
        "epochs=2",
    ]
    code, found, error = bench("analyse", "false-negatives", *GRAPH, *words)
    assert (code, error) == (0, "")
    rows = read(Path(found.split()[0]))
    assert [(row["kept"], row["temperature"]) for row in rows] == [
        ("0.0", "0.1"),
        ("0.0", "1.0"),
        ("1.0", "0.1"),
        ("1.0", "1.0"),
    ]
    assert [float(row["weighted_share"]) for row in rows[:2]] == [0, 0]
    low, high = (float(row["weighted_share"]) for row in rows[2:])
    assert low != high
    for pair in (rows[:2], rows[2:]):
        best = max(float(row["accuracy"]) for row in pair)
        assert [float(row["relative_accuracy"]) for row in pair] == [
            float(row["accuracy"]) / best for row in pair
        ]


MISTAKES = [
    (["scores", *GRAPH, "--loss", "none"], "--loss none trains nothing"),
    (["scores", *GRAPH, "--loss", "infonce", "--loss", "infonce"], "a loss is given twice"),
    (["scores", *GRAPH, "--loss", "infonce", "--recipe", "epochs=0"], "this recipe trains nothing"),
    (["scores", *GRAPH, "--loss", "infonce", "--output", "file"], "cannot write to file"),
    (["false-negatives", *GRAPH, "--loss", "dar"], "unknown parameter of dar 'temperature'"),
    (
        ["false-negatives", *GRAPH, "--loss", "infonce(temperature=1)"],
        "leave the temperature out of the loss",
    ),
    (
        ["false-negatives", *GRAPH, "--loss", "infonce", "--with", "kept=2"],
        "--with kept=2: give numbers from 0 to 1",
    ),
    (
        ["false-negatives", *GRAPH, "--loss", "infonce", "--with", "temperatures=0,1"],
        "temperature must be a finite number",
    ),
    (
        [
            "false-negatives",
            "--domain",
            "image",
            "--tiny",
            "--loss",
            "infonce",
            "--recipe",
            "pairing=supervised",
        ],
        "a pairing by class has no false negatives",
    ),
    (
        ["false-negatives", "--domain", "sentence", "--tiny", "--loss", "infonce"],
        "this analysis needs classes, but this domain has none",
    ),
]


@pytest.mark.parametrize(
    ("words", "message"), MISTAKES, ids=lambda value: value if isinstance(value, str) else None
)
def test_a_mistake_is_one_line(bench, words: list[str], message: str) -> None:
    Path("file").touch()
    code, found, error = bench("analyse", *words)
    assert (code, found) == (2, "")
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_missing_matplotlib_is_named_before_the_training(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    code, _, error = bench("analyse", "scores", *GRAPH, "--loss", "infonce")
    assert code == 2
    assert error == (
        "bench: the plot needs matplotlib, which is not installed: "
        'pip install "contrastbench[report]"\n'
    )
