"""All checks, and what they say of a loss.

>>> [result.name for result in check_loss("infonce") if not result.passed]
[]
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from contrastbench.losses.base import Loss
from contrastbench.losses.errors import is_termination
from contrastbench.losses.laws import (
    derivatives,
    interface,
    invariances,
    learning,
    limits,
    precision,
)
from contrastbench.losses.laws.assertions import Build, Check
from contrastbench.losses.registry import make_loss
from contrastbench.losses.source import Sources

CLASSES = 64  # the largest batch of the battery has as many samples, and so no more classes
DIM = 8  # of most of its batches

BLOCK = (
    "terms sees a block of anchors with all keys, never the whole batch: what is over anchors "
    "belongs into combine"
)
LOGARITHMS = (
    "stay in log space (scores.log_share, log_mean_neg), and exponentiate differences alone"
)
REMEDIES = {
    "randomness": "draw or change only where self.training is true: a training then draws by seed, "
    "epoch and step, and the other checks, which compare values, are run",
    "scalar": "return one number: combine(terms) is their mean unless you write your own",
    "batch size": f"statistics of a batch may be 0/0 where it is small; {BLOCK}",
    "permutation": "anchors come in any order; set ordered = True if yours may not",
    "rotation": "use scores.pos and scores.neg, the cosines, not coordinates",
    "gradient": "write detach() where a weight is a constant, not torch.no_grad()",
    "second gradient": "a torch.autograd.Function of your own must be differentiable twice",
    "float32": LOGARITHMS,
    "half precision": "a ScoreLoss computes in float32; leave the scores to it",
    "low temperature": LOGARITHMS,
    "zero rows": "do not divide by a score or a length: both may be zero",
    "no negatives": "let the UserError of an empty row through",
    "padding": "reduce over positives by scores.mean_pos or log_mean_pos, which know the padding",
    "tiles": BLOCK,
    "parameters": 'keep each argument as an attribute of its name: self.x = self.checked("x", x)',
    "closer positives": (
        "on graphs log_share is log(pos / mean neg) and may exceed 0, so its exponential is no "
        "probability: take 1 - p from sigmoid, or min(log_share, 0)"
    ),
    "learning": "keep parameters as tensors: .item() and .data cut their gradient",
    "limits": ("declare what the formula shows, such as constant=True, factor or one_positive"),
    "state": "leave state_dict and load_state_dict to torch.nn.Module",
}
CHECKS: list[Check] = [
    interface.check_randomness,
    interface.check_scalar,
    interface.check_batch_size,
    invariances.check_permutation,
    invariances.check_rotation,
    derivatives.check_gradient,
    derivatives.check_second_gradient,
    precision.check_float32,
    precision.check_half_precision,
    precision.check_low_temperature,
    precision.check_zero_rows,
    interface.check_no_negatives,
    invariances.check_padding,
    invariances.check_tiles,
    interface.check_parameters,
    learning.check_closer_positives,
    learning.check_learning,
    learning.check_state,
    limits.check_limits,
]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""  # what usually helps where it has failed


def check_loss(name: str, seeds: Iterable[int] = range(3), **params: Any) -> list[CheckResult]:
    """Run every check on a loss in its `eval` mode; of one that draws or changes there, only this.

    Args:
        name: whatever `get_loss` takes: a registered name, a sum, or `my_loss.py:MyLoss`.
        seeds: each check runs once for each.
        params: the loss's parameters.

    Raises:
        ValueError: unknown name or parameter.
    """

    def build(**changed: Any) -> Loss:
        return prepared(name, {**params, **changed}, sources)

    sources = Sources()
    build()
    first, *others = CHECKS
    repeats = run(first, build, seeds)
    return [repeats, *(run(check, build, seeds) for check in others if repeats.passed)]


def prepared(name: str, params: dict[str, Any], sources: Sources | None = None) -> Loss:
    """The loss as a trainer prepares it, in float64 and `eval` mode; the same one each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loss = make_loss(name, params, sources or Sources())
        if loss.needs_classes:
            loss.prepare(CLASSES, DIM)
    return loss.double().eval()


def run(check: Check, build: Build, seeds: Iterable[int]) -> CheckResult:
    """The outcome of one check; whatever a user's loss raises is a failed check."""
    title = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        for seed in seeds:
            check(build, seed)
    except (Exception, SystemExit) as error:
        if is_termination(error):
            raise
        why = f"{type(error).__name__}: {error}".split("\n")[0]
        return CheckResult(title, False, why, REMEDIES.get(title, ""))
    return CheckResult(title, True, (check.__doc__ or "").split("\n")[0])
