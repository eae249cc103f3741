"""Estimating information: formulas against plain loops and closed forms in float64, and words."""

import csv
import math
from pathlib import Path

import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

import frozen
import oracles
from contrastbench.benchmarks.analyses import estimates
from contrastbench.benchmarks.analyses import mutual_information as mi
from contrastbench.benchmarks.analyses.critics import CRITICS, as_scores
from contrastbench.benchmarks.analyses.gaussians import Gaussians
from contrastbench.benchmarks.analyses.score_losses import loss_of_scores, pulls
from contrastbench.domains.progress import Progress
from contrastbench.losses import get_loss
from contrastbench.losses.registry import LOSSES, loss_class
from contrastbench.losses.spec import LossSpec

SKEW = 1 / 128
BOUNDS = {  # with the scale of a critic
    "cpc": {"alpha": 0.1},
    "mlcpc": {"alpha": 0.1},
    "nwj": {"alpha": 0.1},
    "dv": {},
    "renyi": {"gamma": 1.5},
    "rmlcpc": {"alpha": 0.1, "gamma": 1.5},
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def matrix(n: int = 5, shift: float = 0.0) -> Tensor:
    """Scores far outside of cosines, some below -2."""
    rng = torch.Generator().manual_seed(0)
    return 3 * torch.randn(n, n, generator=rng, dtype=torch.float64) + shift


def parts(f: Tensor) -> tuple[list[float], list[list[float]]]:
    n = len(f)
    return [float(f[i, i]) for i in range(n)], [
        [float(f[i, j]) for j in range(n) if j != i] for i in range(n)
    ]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def expectation(f: Tensor, of, positive: bool) -> float:
    pos, neg = parts(f)
    return mean([of(s) for s in (pos if positive else [s for row in neg for s in row])])


@pytest.mark.parametrize("shift", [0.0, -20.0])
@pytest.mark.parametrize("name", BOUNDS)
def test_a_loss_meets_a_critic_of_any_size_as_the_paper_has_it(
    name: str, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores below -2 are no holes here, as they would be among cosines."""
    f = matrix(shift=shift).requires_grad_()
    rows = [(f[i, i].unsqueeze(0), torch.cat([f[i, :i], f[i, i + 1 :]])) for i in range(len(f))]
    monkeypatch.setattr(oracles, "anchors", lambda _: iter(rows))
    expected = getattr(oracles, name)(None, temperature=1.0, **BOUNDS[name])
    found = loss_of_scores(get_loss(name, temperature=1.0, **BOUNDS[name]), as_scores(f))
    assert found.item() == pytest.approx(expected.item(), rel=1e-10)
    gradients = [torch.autograd.grad(x, f, retain_graph=True)[0] for x in (found, expected)]
    assert torch.allclose(*gradients, rtol=1e-8, atol=1e-12)


def test_what_declares_a_divergence_can_estimate_it() -> None:
    declared = [name for name in LOSSES if loss_class(name).divergence]
    frozen.check_names("BOUNDS", BOUNDS, declared, "enter its parameters with a critic there")
    for name in BOUNDS:
        found = mi.estimator(LossSpec(name))
        assert (found.gamma is None) == ("gamma" not in BOUNDS[name])
        assert (found.alpha > 0) == ("alpha" in BOUNDS[name])


def test_corrections_are_those_of_the_paper() -> None:
    f = matrix()
    f[0, 0] = 12.0
    for alpha in (0.0, SKEW, 0.3):
        pos, _ = parts(f)
        z = alpha * expectation(f, math.exp, True) + (1 - alpha) * expectation(f, math.exp, False)
        ratios = [(1 - alpha) * math.exp(s) / (z - alpha * math.exp(s)) for s in pos]
        there = [math.log(r) for r in ratios if r > 0]
        estimate, undefined = estimates.corrected(as_scores(f), alpha)
        assert float(estimate) == pytest.approx(mean(there), rel=1e-10)
        assert float(undefined) == pytest.approx(1 - len(there) / len(pos), abs=1e-12)
    assert float(undefined) > 0, "the last skew leaves a pair without a density"


@pytest.mark.parametrize("alpha", [0.0, SKEW, 0.3])
def test_an_estimate_by_anchor_is_algorithm_2_in_which_the_skew_cancels(alpha: float) -> None:
    f = matrix()
    logs = []
    for pos, neg in zip(*parts(f), strict=True):
        z = alpha * math.exp(pos) + (1 - alpha) * mean([math.exp(s) for s in neg])
        r_alpha = math.exp(pos) / z
        logs.append(math.log((1 - alpha) * r_alpha / (1 - alpha * r_alpha)))
    assert float(estimates.by_anchor(as_scores(f)).mean()) == pytest.approx(mean(logs), rel=1e-10)


def test_gaussians_have_the_information_that_they_are_asked_for() -> None:
    for nats in (0.5, 4.0, 10.0):
        gaussians = Gaussians(nats, 3)
        assert -3 / 2 * math.log(1 - gaussians.rho**2) == pytest.approx(nats, rel=1e-12)
    x, y = Gaussians(2.0, 3).draw(100_000, torch.Generator().manual_seed(0))
    covariance = torch.cov(torch.cat([x, y], dim=1).T)
    rho = Gaussians(2.0, 3).rho
    expected = (
        torch.eye(6) + rho * torch.diag(torch.ones(3), 3) + rho * torch.diag(torch.ones(3), -3)
    )
    assert torch.allclose(covariance, expected, atol=0.02)


def densities(rho: float):
    joint = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    apart = multivariate_normal([0, 0], [[1, 0], [0, 1]])
    return joint, apart


def test_log_ratios_are_those_of_the_densities() -> None:
    gaussians = Gaussians(1.5, 4)
    x, y = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    joint, apart = densities(gaussians.rho)
    for i in range(6):
        expected = sum(
            joint.logpdf([float(x[i, k]), float(y[i, k])])
            - apart.logpdf([float(x[i, k]), float(y[i, k])])
            for k in range(4)
        )
        assert float(gaussians.log_ratio(x, y)[i]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("gamma", [0.5, 1.5, 2.0, 2.5])
def test_the_closed_form_of_a_renyi_divergence_is_its_integral(gamma: float) -> None:
    gaussians = Gaussians(0.2, 1)
    joint, apart = densities(gaussians.rho)
    grid = torch.linspace(-20, 20, 801, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(grid, grid, indexing="ij"), dim=-1).numpy()
    integral = (
        torch.as_tensor(gamma * joint.logpdf(points) + (1 - gamma) * apart.logpdf(points))
        .exp()
        .sum()
        * float(grid[1] - grid[0]) ** 2
    )
    assert gaussians.renyi(gamma) == pytest.approx(
        float(integral.log()) / (gamma * (gamma - 1)), rel=1e-9
    )


@pytest.mark.parametrize("gamma", [1.5, 2.0])
def test_the_renyi_objective_at_the_true_ratio_is_the_closed_form(gamma: float) -> None:
    """`renyi` and `rmlcpc` without skew, on pairs of which the best critic is known."""
    gaussians = Gaussians(0.5)
    x, y = gaussians.draw(1500, torch.Generator().manual_seed(0), torch.float64)
    scores = as_scores(gaussians.log_ratio(x.unsqueeze(1), y))
    for name, params in (("renyi", {}), ("rmlcpc", {"alpha": 0.0})):
        loss = get_loss(name, temperature=1.0, gamma=gamma, **params)
        assert -float(loss_of_scores(loss, scores)) == pytest.approx(
            gaussians.renyi(gamma), abs=0.05
        )


@pytest.mark.parametrize("gamma", [None, 2.0])
def test_a_skewed_divergence_is_what_the_objective_has_at_the_best_critic(gamma) -> None:
    gaussians, alpha = Gaussians(3.0), 0.05
    x, y = gaussians.draw(1500, torch.Generator().manual_seed(1), torch.float64)
    log_r = gaussians.log_ratio(x.unsqueeze(1), y)
    best = log_r - torch.logaddexp(
        log_r + math.log(alpha), torch.tensor(math.log1p(-alpha), dtype=torch.float64)
    )
    names = ("mlcpc", "nwj") if gamma is None else ("rmlcpc",)
    for name in names:
        order = {} if gamma is None else {"gamma": gamma}
        loss = get_loss(name, temperature=1.0, alpha=alpha, **order)
        found = -float(loss_of_scores(loss, as_scores(best + (name == "nwj"))))
        assert found == pytest.approx(gaussians.divergence(alpha, gamma), abs=0.03)
        for worse in (1.1 * best, 0.9 * best, torch.zeros_like(best)):
            assert -float(loss_of_scores(loss, as_scores(worse + (name == "nwj")))) < found


@pytest.mark.parametrize("name", ["cpc", "mlcpc", "nwj", "rmlcpc"])
def test_no_critic_gets_above_the_bound_of_the_skew(name: str) -> None:
    """Log of 1 / alpha; that over the order for a Rényi divergence. Near it with a good critic."""
    for gamma in (1.5, 3.0) if name == "rmlcpc" else (1.0,):
        loss = get_loss(name, temperature=1.0, alpha=0.1, **({"gamma": gamma} if gamma > 1 else {}))
        ceiling = math.log(10) / gamma
        for scale in (0.1, 1.0, 30.0):
            for f in (matrix(40) * scale, torch.eye(40, dtype=torch.float64) * scale):
                assert -float(loss_of_scores(loss, as_scores(f))) <= ceiling + 1e-12
        far = torch.full((40, 40), -60.0, dtype=torch.float64).fill_diagonal_(1 + math.log(10))
        assert -float(loss_of_scores(loss, as_scores(far))) == pytest.approx(ceiling, abs=1e-9)


@pytest.mark.parametrize("name", CRITICS)
def test_a_critic_scores_each_x_with_each_y(name: str) -> None:
    torch.manual_seed(0)
    critic = CRITICS[name](3).double()
    x, y = torch.randn(2, 20, 3, dtype=torch.float64)
    found = critic(x, y)
    for i, j in ((0, 0), (3, 17), (19, 8)):
        if name == "joint":
            hidden = torch.relu(
                critic.of_x.weight @ x[i] + critic.of_y.weight @ y[j] + critic.of_x.bias
            )
            expected = critic.out.weight[0] @ hidden + critic.out.bias[0]
        else:
            expected = critic.of_x(x[i]) @ critic.of_y(y[j])
        assert found[i, j].item() == pytest.approx(expected.item(), rel=1e-10)


def test_pulls_are_the_derivatives_of_the_loss() -> None:
    f, eps = matrix() / 10, 1e-6
    loss = get_loss("rmlcpc", temperature=1.0, alpha=0.1)
    by_pos, by_neg = pulls(loss, as_scores(f))
    for (i, j), found in (((1, 1), by_pos[1, 0]), ((1, 3), by_neg[1, 2])):
        up, down = f.clone(), f.clone()
        up[i, j] += eps
        down[i, j] -= eps
        slope = (loss_of_scores(loss, as_scores(up)) - loss_of_scores(loss, as_scores(down))) / (
            2 * eps
        )
        assert float(found) == pytest.approx(float(slope), rel=1e-5)


def test_a_critic_learns_and_errors_are_those_of_the_second_half_of_each_level() -> None:
    found = mi.estimator(LossSpec("mlcpc", {"alpha": SKEW}))
    study = mi.Study(["separable"], [1.0, 2.0], 60, 0)
    with Progress(2, "levels") as progress:
        values = mi.train_course(found, "separable", study, torch.device("cpu"), progress)
    assert values.shape == (120, 4)
    assert values[50:60, 0].mean() > values[:10, 0].mean() + 0.3
    rows = list(mi.error_rows([mi.CriticCourse(found, "separable", values)], study))
    label, critic, truth, name, _, average, bias, variance, rmse, undefined = rows[3]
    assert (label, critic, truth, name) == (found.label, "separable", 2.0, "objective")
    late = values[90:120, 0].double()
    expected = late.mean(), late.mean() - 2, late.var(correction=0)
    assert (average, bias, variance) == pytest.approx([float(x) for x in expected], rel=1e-4)
    assert rmse == pytest.approx(float((late - 2).square().mean().sqrt()), rel=1e-4)
    assert undefined is None


def test_a_course_that_diverges_ends_there(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(type(get_loss("dv"))):  # type: ignore[misc]
        calls = 0

        def terms(self, scores):
            Broken.calls += 1
            return super().terms(scores) * (math.nan if Broken.calls == 4 else 1)

    found = mi.Estimator("broken", Broken(1.0), 0.0, None)
    study = mi.Study(["separable"], [1.0, 2.0], 4, 0)
    with Progress(2, "levels") as progress:
        values = mi.train_course(found, "separable", study, torch.device("cpu"), progress)
    assert len(values) == 3
    assert capsys.readouterr().err == "broken, separable: diverged at step 4\n"
    course = mi.CriticCourse(found, "separable", values)
    assert [row[5] is None for row in mi.error_rows([course], study)] == [False] * 3 + [True] * 3
    assert [row[2] for row in mi.curve_rows([course], study)] == [1, 2, 3]
    mi.plot([course], study)


def test_the_command_writes_curves_errors_and_a_plot(bench, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    words = ["--loss", "mine.py:Mine", "--loss", "renyi", "--with", "critic=joint,separable"]
    code, found, error = bench("analyse", "mutual-information", "--tiny", *words, "--output", "out")
    assert (code, error) == (0, "")
    assert found.split() == [
        f"out/{name}" for name in ("curves.csv", "mutual-information.csv", "mutual-information.svg")
    ]
    curves, errors = read(Path("out/curves.csv")), read(Path("out/mutual-information.csv"))
    assert len(curves) == 2 * 2 * 5 * 4
    assert len(errors) == 2 * 2 * 5 * 3
    assert [row["bounds"] for row in errors if row["loss"] == "renyi"][::3] == [
        str(level) for level in (2.0, 4.0, 6.0, 8.0, 10.0) * 2
    ], "the Rényi divergence of order 2 of Gaussians is their information"


OWN = """
from contrastbench.losses import Scores, ScoreLoss


class Mine(ScoreLoss):
    divergence = "kl"

    def terms(self, scores: Scores):
        return scores.log_mean_neg(scores.neg).squeeze(1) - scores.mean_pos(scores.pos)


class Off(Mine):
    def terms(self, scores: Scores):
        return super().terms(scores) + 2


class Ordered(Mine):
    divergence = "renyi"
"""
MISTAKES = [
    (["--loss", "infonce"], "is no bound of a divergence: take one of cpc, mlcpc, rmlcpc, renyi,"),
    (["--loss", "cpc + dv"], "minus cpc + dv is no bound of a divergence"),
    (["--loss", "cpc(alpha=1)"], "alpha = 1 leaves no negatives to compare with"),
    (["--loss", "mine.py:Off"], "is -2 for a critic that tells no pairs apart"),
    (["--loss", "mine.py:Ordered"], "give mine a parameter gamma"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_line(bench, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    code, found, error = bench("analyse", "mutual-information", *words)
    assert (code, found) == (2, "")
    assert message in error
    assert len(error.splitlines()) == 1
