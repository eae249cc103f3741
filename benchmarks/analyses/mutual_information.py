"""Losses as estimators of mutual information, where it is known: Figure 2 of RényiCL.

A critic f is trained with a loss on pairs of correlated Gaussians whose information rises in steps.
Lee and Shin, "RényiCL: Contrastive Representation Learning with Skew Rényi Divergence", NeurIPS
2022, appendix C, https://arxiv.org/abs/2208.06270. Of every batch, which is new at each step and
is estimated from before it is trained on, three numbers are kept:

- objective: minus the loss, a lower bound of the divergence that the loss declares;
- corrected and by_anchor: the information as `estimates` has it from the critic.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from contrastbench.benchmarks.analyses import output, score_losses
from contrastbench.benchmarks.analyses.critics import CRITICS, as_scores
from contrastbench.benchmarks.analyses.declaration import Work
from contrastbench.benchmarks.analyses.estimates import by_anchor, corrected
from contrastbench.benchmarks.analyses.gaussians import Gaussians
from contrastbench.benchmarks.analyses.plots import figure, shared_legend
from contrastbench.benchmarks.analyses.trainer import training_loss
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.progress import Progress
from contrastbench.errors import UserError, tell
from contrastbench.losses.base import Loss
from contrastbench.losses.registry import LOSSES, loss_class
from contrastbench.losses.spec import LossSpec

BATCH, LR, DIMENSIONS = 128, 1e-3, 20  # appendix C.2
SMOKE_STEPS = 4  # steps with --tiny
CURVE_POINTS = 100  # of a level in the curves, each the mean of as many steps
ESTIMATORS = ("objective", "corrected", "by_anchor")
CURVES = ("loss", "critic", "step", "information", *ESTIMATORS, "undefined")
OF_ERRORS = ("mean", "bias", "variance", "rmse", "undefined")
ERROR_COLUMNS = ("loss", "critic", "information", "estimator", "bounds", *OF_ERRORS)


class Estimator(NamedTuple):
    """A loss, and the divergence that minus the loss bounds."""

    label: str
    loss: Loss
    alpha: float
    gamma: float | None  # None: the Kullback-Leibler divergence


class CriticCourse(NamedTuple):
    """The course of a critic's training, with every step of every level."""

    estimator: Estimator
    critic: str
    values: Tensor  # (steps, 4) the three estimates, and the share of pairs without the second


@dataclass(frozen=True)
class Study:
    """The settings of the study, which every loss shares.

    Args:
        critics: names of `CRITICS`.
        levels: the true information in nats, one after the other.
        steps: of training at each level.
        seed: of pairs and critics.
    """

    critics: Sequence[str]
    levels: Sequence[float]
    steps: int
    seed: int

    @property
    def gaussians(self) -> list[Gaussians]:
        """One for each level."""
        return [Gaussians(level, DIMENSIONS) for level in self.levels]


def run(work: Work) -> Iterator[Path]:
    """Do what `bench analyse mutual-information` asks for."""
    critics, levels = work.values["critic"], work.values["information"]
    steps = SMOKE_STEPS if work.tiny else work.values["steps"]
    return analyse(
        work.losses, Study(critics, levels, steps, *work.seeds), work.options, work.folder
    )


def analyse(
    methods: Sequence[LossSpec], study: Study, options: Options, folder: Path
) -> Iterator[Path]:
    """Train a critic of each kind with each loss; write and draw what they estimate.

    Raises:
        UserError: a loss is no estimator.
    """
    estimators = [estimator(method) for method in methods]
    device = open_device(options.device, options.deterministic, options.tf32)
    torch.set_num_threads(1)
    courses = []
    with Progress(len(estimators) * len(study.critics) * len(study.levels), "levels") as progress:
        for found, critic in product(estimators, study.critics):
            values = train_course(found, critic, study, device, progress)
            courses.append(CriticCourse(found, critic, values))
    curves = curve_rows(courses, study)
    yield output.write_csv(folder, "curves", CURVES, curves)
    errors = error_rows(courses, study)
    yield from output.write_results(
        folder, "mutual-information", ERROR_COLUMNS, errors, plot(courses, study)
    )


def estimator(method: LossSpec) -> Estimator:
    """Return the loss with a temperature of 1, since the critic learns its own scale.

    Raises:
        UserError: minus the loss is no bound of a divergence.
    """
    params = method.complete.params
    if "temperature" in method.params:
        raise UserError("the critic learns its own scale: leave the temperature out of the loss")
    scale = {"temperature": 1.0} if "temperature" in params else {}
    loss = training_loss(LossSpec(method.name, {**method.params, **scale}))
    score_losses.check_score_loss(loss)
    if loss.divergence not in ("kl", "renyi"):
        known = ", ".join(name for name in LOSSES if loss_class(name).divergence)
        raise UserError(
            f"minus {loss.name} is no bound of a divergence: take one of {known}, or a loss of "
            'your own whose class says divergence = "kl" or "renyi"'
        )
    alpha, gamma = params.get("alpha", 0.0), params.get("gamma")
    if alpha == 1:
        raise UserError("alpha = 1 leaves no negatives to compare with: give a smaller alpha")
    if loss.divergence == "renyi" and gamma is None:
        raise UserError(f"a Rényi divergence needs an order: give {loss.name} a parameter gamma")
    check_nothing(loss)
    return Estimator(method.label, loss, alpha, gamma if loss.divergence == "renyi" else None)


@torch.no_grad()
def check_nothing(loss: Loss) -> None:
    """Raise unless the best bound that a critic which tells no pairs apart can give is zero."""
    scores = (as_scores(torch.full((BATCH, BATCH), constant)) for constant in (0.0, 1.0))
    best = max(-float(score_losses.loss_of_scores(loss, found)) for found in scores)
    if abs(best) > 1e-4:
        raise UserError(
            f"minus {loss.name} is {best:.4g} for a critic that tells no pairs apart, but a "
            "divergence is 0 there: add that constant to the loss"
        )


def train_course(
    found: Estimator, critic: str, study: Study, device: torch.device, progress: Progress
) -> Tensor:
    """Train through all levels and return (steps, 4); the course ends where the loss diverges."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(study.seed)
        network = CRITICS[critic](DIMENSIONS).to(device)
    rng = torch.Generator().manual_seed(study.seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=LR, fused=True)
    seen: list[Tensor] = []
    for level in study.gaussians:
        for _ in range(study.steps):
            x, y = level.draw(BATCH, rng)
            estimates, loss = critic_step(network, found, x.to(device), y.to(device))
            if not math.isfinite(estimates[0]):
                tell(f"{found.label}, {critic}: diverged at step {len(seen) + 1}")
                return torch.stack(seen).cpu() if seen else torch.empty(0, 4)
            seen.append(estimates)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        progress.step(f"{found.label}, {critic}, {level.information:g} nats")
    return torch.stack(seen).cpu()


def critic_step(
    network: nn.Module, found: Estimator, x: Tensor, y: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the estimates of one batch, (4,), and the loss."""
    scores = as_scores(network(x, y))
    loss = score_losses.loss_of_scores(found.loss, scores)
    with torch.no_grad():
        estimate, undefined = corrected(scores, found.alpha)
        return torch.stack([-loss, estimate, by_anchor(scores).mean(), undefined]), loss


def curve_rows(courses: Sequence[CriticCourse], study: Study) -> Iterator[tuple[Any, ...]]:
    """Means of neighbouring steps; `step` is the last of them."""
    for course in courses:
        for end, means in smooth(course.values, study.steps):
            level = study.levels[(end - 1) // study.steps]
            yield course.estimator.label, course.critic, end, level, *map(five_digits, means)


def smooth(values: Tensor, steps: int) -> Iterator[tuple[int, list[float]]]:
    """The last of so many neighbouring steps of one level, and their means, (4,)."""
    width = max(1, steps // CURVE_POINTS)
    for start in range(0, len(values), steps):
        level = values[start : start + steps]
        for end in range(width, len(level) + 1, width):
            yield start + end, level[end - width : end].nanmean(dim=0).tolist()


def error_rows(courses: Sequence[CriticCourse], study: Study) -> Iterator[tuple[Any, ...]]:
    """Summarise the second half of each level's steps; the critic learns in the first half."""
    for (found, critic, values), (k, level) in product(courses, enumerate(study.gaussians)):
        end = (k + 1) * study.steps
        last = values[end - study.steps // 2 : end]
        truth = level.information
        for column, name in enumerate(ESTIMATORS):
            bounds = level.divergence(found.alpha, found.gamma) if name == "objective" else truth
            errors = estimate_summary(last[:, column], truth)
            undefined = five_digits(float(last[:, -1].mean())) if name == "corrected" else None
            numbers = (five_digits(x) for x in (bounds, *errors))
            yield found.label, critic, truth, name, *numbers, undefined


def estimate_summary(estimates: Tensor, truth: float) -> tuple[float, ...]:
    """Return mean, bias, variance and RMSE of the known estimates; nan without any."""
    there = estimates[estimates.isfinite()].double()
    mean = float(there.mean())
    variance = float((there - mean).square().mean())
    return mean, mean - truth, variance, math.sqrt((mean - truth) ** 2 + variance)


def five_digits(value: float) -> float | str | None:
    """Round to five digits; return None for no number, and a word for an infinity."""
    if math.isnan(value):
        return None
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)


def plot(courses: Sequence[CriticCourse], study: Study) -> Figure:
    """A panel for each loss and critic: the three estimates and the true information."""
    title = f"Information of Gaussians, d = {DIMENSIONS}, batches of {BATCH}, seed {study.seed}"
    drawing, panels = figure(title, len(courses))
    edges = [k * study.steps for k in range(len(study.levels) + 1)]
    for axes, course in zip(panels, courses, strict=True):
        curves = list(smooth(course.values, study.steps))
        x = [end for end, _ in curves]
        for k, name in enumerate(ESTIMATORS):
            axes.plot(x, [means[k] for _, means in curves], linestyle="-", label=name)
        axes.stairs(study.levels, edges, baseline=None, color="black", lw=1, label="true")
        axes.set_ylim(-1, 1.5 * max(study.levels) + 1)
        axes.set_title(f"{course.estimator.label}, {course.critic}", fontsize=8, parse_math=False)
        axes.set_xlabel("training step")
        axes.set_ylabel("nats")
    shared_legend(drawing, panels[0])
    return drawing
