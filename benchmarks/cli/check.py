"""Commands `bench check-loss`, `check-domain` and `check-device`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from contrastbench.benchmarks.cli.options import parse_loss
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.cli.run import has_collapsed, rank_text, rate_text
from contrastbench.domains.registry import declaration
from contrastbench.errors import UserError, unknown
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import LossSpec

if TYPE_CHECKING:
    from contrastbench.benchmarks.checks.trial import Trial
    from contrastbench.losses.laws import CheckResult

PAIRING_NAMES = ("both_views", "other_view", "whole_row", "same_class")  # of check-loss --against


def check_loss(
    losses: Annotated[list[str], Argument(metavar="LOSS...")],
    against: str | None = None,
    pairing: str | None = None,
) -> None:
    """Check a loss of your own as registered losses are checked.

    The first check that fails ends it, with the line, the cause and a remedy. A loss of two whole
    views is also tried for 20 steps in each domain, by its default recipe.
    With --against the loss is compared with another one. Exit code 1: they differ.

    Args:
        losses: Loss: mine.py:Mine, package.module:Name, a name, a sum, or X(KEY=VALUE).
        against: Compare with this loss, such as lightly.loss:NTXentLoss, or X(tau=1).
        pairing: With --against: both_views, other_view, whole_row or same_class.

    Example: bench check-loss "mine.py:Mine(margin=0.2)" "mine.py:Mine(margin=0.5)"
    Example: bench check-loss mine.py:Mine --against lightly.loss:NTXentLoss
    """
    if pairing and against is None:
        raise UserError("--pairing has no loss to compare with: add --against LOSS")
    specs = [parse_loss(text, "check-loss") for text in losses]
    for spec in specs:
        if is_registered(spec.name):
            spec.check()  # a mistake is named before torch is imported
    if against is not None:
        if len(specs) > 1:
            raise UserError("--against compares one loss: name one before it")
        compare_losses(specs[0], parse_loss(against, "--against"), pairing or PAIRING_NAMES[0])
        return
    from contrastbench.losses.laws import check_loss

    results = []
    for spec in specs:
        if len(specs) > 1:
            say(f"{spec.label}:")
        results += print_diagnoses(check_loss(spec.name, **spec.params))
    if all(result.passed for result in results):
        for spec in specs:
            results += try_views(spec)
    conclude_checks(results, "; the checks after a failed one were not run")


def try_views(spec: LossSpec) -> "list[CheckResult]":
    """Say how the first steps of a loss of two whole views went; it may need rates of its own.

    Returns:
        The first domain in which it raises, if there is one.
    """
    from contrastbench.benchmarks.checks.trial import trials

    made = spec.make()
    for trial in trials(spec) if made is not None and made.needs_views else ():
        if trial.raised:
            return print_diagnoses([trial.raised])
        say(f"{'tried':8}  {trial.domain:18}  {trial_text(trial)}")
    return []


def trial_text(trial: "Trial") -> str:
    """Return in words what was seen of a loss in a domain."""
    if trial.diverged:
        return f"diverged, {trial.error}; {rate_text(trial.recipe)}"
    if trial.error:
        return f"not tried: {trial.error}"
    course = f"the loss went from {trial.losses[0]:.4g} to {trial.losses[-1]:.4g}"
    collapsed = ": it collapsed" * has_collapsed(trial.health)
    return f"{len(trial.losses)} steps: {course}, {rank_text(trial.health)}{collapsed}"


def compare_losses(first: LossSpec, other: LossSpec, pairing: str) -> None:
    """Print the table of two losses on the same batches; exit with code 1 if they differ."""
    if pairing not in PAIRING_NAMES:
        raise unknown("pairing", pairing, PAIRING_NAMES)
    if is_registered(other.name):
        other.check()
    from contrastbench.benchmarks.against.calls import CalledLoss
    from contrastbench.benchmarks.against.compare import compare_on_batches

    comparison = compare_on_batches(
        *(CalledLoss(spec.name, spec.params, pairing) for spec in (first, other))
    )
    for line in comparison.lines():
        say(line)
    if not comparison.equal:
        raise typer.Exit(1)


def check_domain(name: str) -> None:
    """Check a domain of your own as our domains are checked.

    The checks cover repetition, resuming, and the data.

    Args:
        name: Domain of ours, or of a package of yours.

    Example: bench check-domain graph
    """
    declaration(name)  # a mistake is named before torch is imported
    from contrastbench.benchmarks.checks.domain import check_domain

    conclude_checks(print_diagnoses(check_domain(name)))


def check_device(device: str) -> None:
    """Check that a device computes like a CPU.

    It must also repeat its numbers, resume to the bit, and never wait for the host. Exit code 1: a
    check failed.

    Args:
        device: Device: cpu, cuda, cuda:1, ...

    Example: bench check-device cuda
    """
    from contrastbench.benchmarks.checks.device import DeviceWork, run_checks
    from contrastbench.benchmarks.running.devices import open_device

    conclude_checks(print_diagnoses(run_checks(DeviceWork(open_device(device)))))


def print_diagnoses(results: "Iterable[CheckResult]") -> "list[CheckResult]":
    """Print a line for each check; where it failed, also the user's line and a remedy."""
    shown = []
    for result in results:
        shown.append(result)
        word = result.word or ("pass" if result.passed else "FAIL")
        say(f"{word:8}  {result.name:18}  {result.detail}")
        if result.place:
            say(f"{'':28}  at {result.place}")
        if result.remedy:
            say(f"{'':28}  try: {result.remedy}")
    return shown


def conclude_checks(results: "Sequence[CheckResult]", rest: str = "") -> None:
    """Print how many checks passed; exit with code 1 if not all did."""
    words = Counter(result.word for result in results if result.word in ("declined", "skipped"))
    passed = sum(result.passed for result in results) - words.total()
    failed = passed + words.total() < len(results)
    others = "".join(f", {count} {word}" for word, count in sorted(words.items()))
    say(f"{passed} of {len(results)} checks passed{others}" + rest * failed)
    if failed:
        raise typer.Exit(1)
