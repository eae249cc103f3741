"""All checks, and what they say of a loss.

>>> [result.name for result in check_loss("infonce") if not result.passed]
[]
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from contrastbench.errors import UserError, check_known, is_termination, keep_streams
from contrastbench.losses.base import Loss
from contrastbench.losses.expression import absolute
from contrastbench.losses.laws import interface, invariances, learning, limits, meaning, precision
from contrastbench.losses.laws.assertions import Build, Law, Remark, Wrong, raised_by_check
from contrastbench.losses.laws.causes import diagnosis
from contrastbench.losses.laws.random_contrasts import with_sample_numbers
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
Cause = Callable[[Law, BaseException], Wrong]
# From causes to consequences, because the first that fails is the last that runs.
LAWS = [
    *(interface.check_runs, interface.check_in_place, interface.check_terms),
    *(interface.check_randomness, interface.check_device, interface.check_scalar),
    *(meaning.check_detached, meaning.check_sign, meaning.check_positives, meaning.check_negatives),
    *(invariances.check_permutation, invariances.check_holes, invariances.check_padding),
    *(invariances.check_repeated_positives, invariances.check_repeated_anchors),
    *(invariances.check_tiles, interface.check_batch_size, invariances.check_rotation),
    *(precision.check_gradient, precision.check_half_precision),
    *(precision.check_low_temperature, precision.check_float32, precision.check_zero_rows),
    *(interface.check_no_negatives, interface.check_parameters, meaning.check_closer_positives),
    *(learning.check_learning, learning.check_state, learning.check_buffers, limits.check_limits),
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
    names = {law.name for law in LAWS}
    if not isinstance(loss.declined_laws, Mapping):
        raise UserError(f'declined_laws of {loss.name} is no mapping: write {{"LAW": "REASON"}}')
    for name, reason in loss.declined_laws.items():
        check_known(f"law in declined_laws of {loss.name}", name, names)
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
        if loss is None:
            raise UserError("none trains nothing, so it has no laws: name a loss such as infonce")
        if loss.needs_classes:
            loss.prepare(BATTERY_CLASSES, BATTERY_DIM)
        if "randomness" in loss.declined_laws:
            loss.register_forward_pre_hook(repeat_draws)
        return with_sample_numbers(loss.double()).eval()


def repeat_draws(*_: object) -> None:
    """Let each call of a loss draw the same numbers: the other laws compare values."""
    torch.manual_seed(0)


def run_law(law: Law, build: Build, seeds: Iterable[int]) -> CheckResult:
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
    if isinstance(error, Wrong):
        cause = error
    elif isinstance(error, AssertionError) and raised_by_check(error):
        measured = (str(error).splitlines() or [""])[0]
        cause = Wrong(f"{law.wrong} ({measured})" if measured else law.wrong, law.remedy)
    else:
        cause = diagnosis(error, build())
    declines = f"; or decline it: declined_laws = {{{law.name!r}: WHY}}" * (law.name in OF_DESIGN)
    return Wrong(str(cause), f"{cause.remedy}{declines}", cause.place)
