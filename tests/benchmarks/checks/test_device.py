"""`bench check-device`: what passes, and that each check can fail."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from contrastbench.benchmarks.checks import device as check_device
from contrastbench.benchmarks.checks.device import DEVICE_CHECKS, DeviceWork, run_checks
from contrastbench.benchmarks.running import devices
from contrastbench.domains.tabular.domain import TabularDomain
from contrastbench.losses.laws import CheckResult
from contrastbench.losses.laws.battery import Law
from shadow import counting, shadow

SHADOW = shadow()  # before torch's first backward pass, which asks what devices there are
CPU = torch.device("cpu")
CHECKS = {law.name: law for law in DEVICE_CHECKS}
LOSSES = ("infonce", "dar")
ON_SHADOW = DeviceWork(SHADOW, ("tabular",), LOSSES)


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Leave torch's switches and threads as other tests want them; many threads wait busily."""
    monkeypatch.setattr(devices, "set_up", lambda *_: None)
    monkeypatch.setattr(check_device, "check_no_wait", watched)


@contextmanager
def watched(device: torch.device) -> Iterator[None]:
    """Refuse waits and copies on the shadow device, as CUDA refuses waits."""
    with counting() as counts:
        yield
    assert not counts.host_reads, f"waits at {', '.join(counts.read_at)}"
    assert not counts.copies, f"copies at {', '.join(counts.copied_at)}"


def result(name: str, work: DeviceWork = ON_SHADOW) -> CheckResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check_device, "DEVICE_CHECKS", [CHECKS[name]])
        (found,) = run_checks(work)
    return found


@pytest.mark.parametrize("name", CHECKS)
def test_a_device_that_computes_as_the_cpu_passes(name: str) -> None:
    found = result(name)
    assert found.passed, found.detail


def test_a_failure_is_told_and_the_next_check_follows(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_one(work: DeviceWork) -> str:
        raise ValueError("wrong\nand more")

    def check_two(work: DeviceWork) -> str:
        return "fine"

    monkeypatch.setattr(check_device, "DEVICE_CHECKS", [Law(check_one), Law(check_two)])
    code, out, _ = bench("check-device", "cpu")
    assert code == 1
    assert [line.split() for line in out.splitlines()[-3:-1]] == [
        ["FAIL", "one", "ValueError:", "wrong"],
        ["pass", "two", "fine"],
    ]


def test_another_gradient_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = check_device.value_and_gradient

    def wrong(loss: Any, contrast: Any, views: Any) -> Any:
        value, *gradients = real(loss, contrast, views)
        far = 1e-3 if views[0].device == SHADOW else 0.0
        return [value, *[gradient + far for gradient in gradients]]

    monkeypatch.setattr(check_device, "value_and_gradient", wrong)
    found = result("losses")
    assert not found.passed
    assert "infonce, both_views, torch.float64: 1.0e-03 from the CPU's" in found.detail


def test_a_step_that_waits_fails_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = TabularDomain.contrasts

    def waiting(self: Any, model: Any, batch: Any) -> Any:
        contrasts = real(self, model, batch)
        contrasts[0].anchor.sum().item()
        return contrasts

    monkeypatch.setattr(TabularDomain, "contrasts", waiting)
    found = result("steps")
    assert not found.passed
    assert "waits at" in found.detail


def test_numbers_that_do_not_repeat_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count()
    real = TabularDomain.contrasts

    def drifting(self: Any, model: Any, batch: Any) -> Any:
        next(model.parameters()).data.add_(1e-3 * next(count))
        return real(self, model, batch)

    monkeypatch.setattr(TabularDomain, "contrasts", drifting)
    work = DeviceWork(CPU, ("tabular",))
    said = [result(name, work).detail for name in ("cells", "resume")]
    assert "tabular: two runs have other numbers" in said[0]
    assert "differs after an interruption at step" in said[1]
