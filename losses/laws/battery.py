"""All checks, and what they say of a loss.

>>> [result.name for result in check_loss("infonce") if not result.passed]
[]
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from contrastbench.errors import UserError, is_termination, keep_streams, unknown
from contrastbench.losses.base import Loss
from contrastbench.losses.expression import absolute
from contrastbench.losses.laws import (
    derivatives,
    interface,
    invariances,
    learning,
    limits,
    meaning,
    precision,
)
from contrastbench.losses.laws.assertions import Build, Remark, Wrong
from contrastbench.losses.laws.causes import (
    KEEP_GIVEN,
    LOGARITHM_REMEDY,
    NEW_ALIKE,
    NO_NUMBERS,
    SHAPE_REMEDY,
    diagnosis,
)
from contrastbench.losses.laws.random_contrasts import with_sample_numbers
from contrastbench.losses.laws.source_lines import raised_by_check
from contrastbench.losses.settings import keep_settings
from contrastbench.losses.source import Sources
from contrastbench.losses.spec import LossSpec

BATTERY_CLASSES = 64  # the largest batch of the battery has as many samples, and so no more classes
BATTERY_DIM = 8  # of most of its batches

# laws that are not asked of a loss that learns a weight for each class
NOT_OF_CLASSES = (
    *("sign", "positives", "negatives", "permutation", "rotation"),
    *("gradient", "low temperature", "no negatives", "closer positives"),
)
# laws that a loss may break by its design
OF_DESIGN = ("randomness", "repeated positives", "repeated anchors", "closer positives")
BLOCK_REMEDY = (
    "terms sees a block of anchors with all keys, never the whole batch: what is over anchors "
    "belongs into combine"
)


@dataclass(frozen=True)
class Law:
    """A check of a loss, a domain or a device, what its failure means, and what usually helps then.

    A check raises AssertionError, and may return what it has found.
    """

    check: Callable[..., str | None]
    wrong: str = ""  # "": its message says it
    remedy: str = ""

    @property
    def name(self) -> str:
        """The name of the law, by which a loss may decline it."""
        return self.check.__name__.removeprefix("check_").replace("_", " ")


Cause = Callable[[Law, BaseException], Wrong]

# From causes to consequences, because the first that fails is the last that runs.
LAWS = [
    Law(interface.check_runs, "the loss does not run", LOGARITHM_REMEDY),
    Law(interface.check_in_place, "the loss changes its scores or views in place", KEEP_GIVEN),
    Law(interface.check_terms, "terms does not return one term for each anchor", SHAPE_REMEDY),
    Law(
        interface.check_randomness,
        "two calls on the same batch differ",
        "draw or change only where self.training is true: a training then draws by seed, "
        "epoch and step, and the other checks, which compare values, are run",
    ),
    Law(interface.check_device, "a tensor stays on the CPU", NEW_ALIKE),
    Law(
        interface.check_scalar,
        "the loss is in another number format than its scores",
        "keep their dtype: no .float() or .half(), and scores.pos.new_zeros(n) for torch.zeros(n)",
    ),
    Law(meaning.check_detached, "positives or negatives get no gradient", NO_NUMBERS),
    Law(
        meaning.check_sign,
        "did the sign flip?",
        "minimise: the loss is minus the logarithm of the positive's share",
    ),
    Law(
        meaning.check_positives,
        "positives change nothing",
        'use scores.pos; a term of a sum is checked in it: "infonce + 0.5*mine.py:Mine"',
    ),
    Law(meaning.check_negatives, "negatives change nothing", "use scores.neg"),
    Law(
        invariances.check_permutation,
        "the order of the samples changes the loss",
        "anchors come in any order; set ordered = True if yours may not",
    ),
    Law(
        invariances.check_holes,
        "keys that are no negatives change the loss",
        "reduce by mean_neg or log_mean_neg: they divide by scores.count, and leave out the holes",
    ),
    Law(
        invariances.check_padding,
        "padding among the positives changes the loss",
        "reduce over positives by scores.mean_pos or log_mean_pos, or leave out scores.padding",
    ),
    Law(
        invariances.check_repeated_positives,
        "the loss grows with the number of positives",
        "take the mean over positives: scores.mean_pos or log_mean_pos",
    ),
    Law(
        invariances.check_repeated_anchors,
        "the loss grows with the number of anchors",
        f"take the mean over anchors: combine does so unless you write your own; {BLOCK_REMEDY}",
    ),
    Law(
        invariances.check_tiles,
        "the loss depends on the blocks in which rows are taken",
        BLOCK_REMEDY,
    ),
    Law(
        interface.check_batch_size,
        "the loss is not finite at some batch size",
        f"statistics of a batch may be 0/0 where it is small; {BLOCK_REMEDY}",
    ),
    Law(
        invariances.check_rotation,
        "a rotation of all embeddings changes the loss",
        "use scores.pos and scores.neg, the cosines, not coordinates",
    ),
    Law(
        derivatives.check_gradient,
        "the gradient is not the derivative of the value",
        "write detach() where a weight is a constant, not .item() or torch.no_grad()",
    ),
    Law(
        precision.check_half_precision,
        "half precision changes the loss",
        "a ScoreLoss computes in float32; leave the scores to it",
    ),
    Law(
        precision.check_low_temperature,
        "the loss overflows at temperature 0.01",
        LOGARITHM_REMEDY,
    ),
    Law(precision.check_float32, "float32 is too coarse for this formula", LOGARITHM_REMEDY),
    Law(
        precision.check_zero_rows,
        "embeddings of zeros make the loss infinite",
        "do not divide by a score or a length: both may be zero",
    ),
    Law(
        interface.check_no_negatives,
        "a batch without negatives is accepted",
        "let the UserError of an empty row through",
    ),
    Law(
        interface.check_parameters,
        "a parameter accepts nonsense, or is not kept",
        'keep each argument as an attribute of its name: self.x = self.checked("x", x)',
    ),
    Law(
        meaning.check_closer_positives,
        "closer positives raise the loss",
        "on graphs log_share is log(pos / mean neg) and may exceed 0, so its exponential is no "
        "probability: take 1 - p from sigmoid, or min(log_share, 0)",
    ),
    Law(
        learning.check_learning,
        "a parameter of the loss does not learn",
        f"let terms use it, or take it out; {NO_NUMBERS}",
    ),
    Law(
        learning.check_state,
        "a checkpoint does not restore the loss",
        "leave state_dict and load_state_dict to torch.nn.Module",
    ),
    Law(
        learning.check_buffers,
        "what the loss remembers depends on blocks of rows",
        "change buffers in conclude: terms runs again for each block in the backward pass",
    ),
    Law(
        limits.check_limits,
        "the loss is not the one that it declares as its limit",
        "declare what the formula shows, such as constant=True, factor or one_positive",
    ),
]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""  # what usually helps where it has failed
    place: str = ""  # the line of the user's own where it has failed
    word: str = ""  # "remark", "declined" or "skipped" where it has not simply passed


def check_loss(name: str, seeds: Iterable[int] = range(3), **params: Any) -> list[CheckResult]:
    """Check law after law on a loss in its `eval` mode, until one fails.

    What would fail after it is often its consequence.

    Args:
        name: whatever `get_loss` takes: a registered name, a sum, or `my_loss.py:MyLoss`.
        seeds: each check runs once for each.
        params: the loss's parameters.

    Raises:
        ValueError: unknown name or parameter, or a declined law that is unknown.
    """

    def build(**changed: Any) -> Loss:
        return prepared_loss(placed, {**params, **changed}, sources)

    placed, sources = absolute(name), Sources()
    loss = build()
    not_run = {
        name: CheckResult(name, True, reason, word=word)
        for word, some in (("skipped", loss.other_laws), ("declined", declined(loss)))
        for name, reason in some.items()
    }
    results = []
    for law in LAWS:
        if loss.needs_classes and law.name in NOT_OF_CLASSES:
            continue
        results.append(not_run.get(law.name) or run_law(law, build, seeds))
        if not results[-1].passed:
            break
    return results


def declined(loss: Loss) -> Mapping[str, str]:
    """Return the laws that a loss declines, with its reasons.

    Raises:
        UserError: a law is unknown, or a reason is missing.
    """
    names = {law.name for law in LAWS}
    if not isinstance(loss.declined_laws, Mapping):
        raise UserError(f'declined_laws of {loss.name} is no mapping: write {{"LAW": "REASON"}}')
    for name, reason in loss.declined_laws.items():
        if name not in names:
            raise unknown(f"law in declined_laws of {loss.name}", name, names)
        if not (isinstance(reason, str) and reason.strip()):
            raise UserError(f"declined_laws of {loss.name}: give the reason for {name!r} as text")
    return loss.declined_laws


def prepared_loss(name: str, params: dict[str, Any], sources: Sources | None = None) -> Loss:
    """The loss as a trainer prepares it, in float64 and `eval` mode; the same one each time."""
    spec = LossSpec(name, params)
    if sources:
        vars(spec)["sources"] = sources
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loss = spec.make()
        assert loss is not None, "no loss has no laws"
        if loss.needs_classes:
            loss.prepare(BATTERY_CLASSES, BATTERY_DIM)
        if "randomness" in loss.declined_laws:
            loss.register_forward_pre_hook(repeat_draws)
        return with_sample_numbers(loss.double()).eval()


def repeat_draws(*_: object) -> None:
    """Let each call of a loss draw the same numbers: the other laws compare values."""
    torch.manual_seed(0)


def run_law(law: Law, build: Build, seeds: Iterable[int]) -> CheckResult:
    """Return the outcome of one check of a loss."""

    def check() -> None:
        with torch.random.fork_rng([]), keep_settings("the loss"), keep_streams():
            for seed in seeds:
                law.check(build, seed)

    return outcome(law, check, partial(cause_in_loss, build))


def outcome(law: Law, check: Callable[[], str | None], cause: Cause) -> CheckResult:
    """Return the outcome of a check; whatever somebody's own code raises is a failed one."""
    try:
        said = check()
    except Remark as remark:
        return CheckResult(law.name, True, str(remark), word="remark")
    except BaseException as error:
        if is_termination(error):
            raise
        wrong = cause(law, error)
        return CheckResult(law.name, False, str(wrong), wrong.remedy, str(wrong.place or ""))
    return CheckResult(law.name, True, said or (law.check.__doc__ or "").split("\n")[0])


def plain_cause(law: Law, error: BaseException) -> Wrong:
    """Return the message of a check as a diagnosis, or what else was raised."""
    if isinstance(error, AssertionError):
        return Wrong(str(error), getattr(error, "remedy", "") or law.remedy)
    return Wrong(f"{type(error).__name__}: {error}".split("\n")[0])


def cause_in_loss(build: Build, law: Law, error: BaseException) -> Wrong:
    """Return the diagnosis of a loss that has failed a check."""
    if isinstance(error, Wrong):
        cause = error
    elif isinstance(error, AssertionError) and raised_by_check(error):
        measured = (str(error).splitlines() or [""])[0]
        cause = Wrong(f"{law.wrong} ({measured})" if measured else law.wrong, law.remedy)
    else:
        cause = diagnosis(error, build())
    declines = f"; or decline it: declined_laws = {{{law.name!r}: WHY}}" * (law.name in OF_DESIGN)
    return Wrong(str(cause), f"{cause.remedy}{declines}", cause.place)
