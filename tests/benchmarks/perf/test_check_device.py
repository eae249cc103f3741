"""`bench check-device`: what passes, and that each check can fail."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from contrastbench.benchmarks.cli import main
from contrastbench.benchmarks.perf import check_device
from contrastbench.benchmarks.perf.check_device import (
    DEVICE_CHECKS,
    DeviceWork,
    check_outcome,
    new_report,
    run_checks,
)
from contrastbench.benchmarks.records.device_report import DeviceReport
from contrastbench.benchmarks.running import devices
from contrastbench.domains.tabular.domain import TabularDomain
from shadow import counting, shadow

SHADOW = shadow()  # before torch's first backward pass, which asks what devices there are
CPU = torch.device("cpu")
LOSSES = ("infonce", "dar")
ON_SHADOW = DeviceWork(SHADOW, ("tabular",), LOSSES, small=True)


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Leave torch's switches and threads as other tests want them; many threads wait busily."""
    monkeypatch.setattr(devices, "set_up", lambda *_: None)
    monkeypatch.setattr(check_device, "cpu_count", lambda: 1)
    monkeypatch.setattr(check_device, "check_no_wait", watched)


@contextmanager
def watched(device: torch.device) -> Iterator[None]:
    """Refuse waits and copies on the shadow device, as CUDA refuses waits."""
    with counting() as counts:
        yield
    assert not counts.host_reads, f"waits at {', '.join(counts.read_at)}"
    assert not counts.copies, f"copies at {', '.join(counts.copied_at)}"


def read(path: Path) -> DeviceReport:
    return DeviceReport(**json.loads(path.read_text()))


@pytest.mark.parametrize("name", DEVICE_CHECKS)
def test_a_device_that_computes_as_the_cpu_passes(name: str) -> None:
    passed, found = check_outcome(DEVICE_CHECKS[name], ON_SHADOW)
    assert passed, found.said


def test_the_command_prints_a_line_for_each_check_and_writes_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(device: torch.device, small: bool) -> DeviceWork:
        return DeviceWork(device, ("tabular",), LOSSES, small)

    monkeypatch.setattr(check_device, "DeviceWork", work)
    words = ["check-device", "cpu", "--tiny", "--results", str(tmp_path)]
    result = CliRunner().invoke(main.app, words)
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "devices").iterdir()
    head, *lines, last = result.stdout.splitlines()
    assert "CPU" in head
    assert "torch" in head
    assert [line.split()[:2] for line in lines] == [["ok", name] for name in DEVICE_CHECKS]
    assert last == f"6 of 6 checks passed ({path})"
    report = read(path)
    assert set(report.checks) == set(DEVICE_CHECKS)
    assert report.device["type"] == "cpu"
    names = {"flops", "step_flops", "images_per_second"}
    expected = {f"{name}_{kind}" for name in names for kind in ("float32", "bf16")}
    assert set(report.throughput) == {"bytes_per_second", *expected}
    assert all(value > 0 for value in report.throughput.values())
    assert json.loads(path.read_text())["checks"]["memory"]["infonce_seconds"] > 0


def test_a_failure_is_told_and_the_next_check_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(work: DeviceWork) -> Any:
        raise ValueError("wrong\nand more")

    right = lambda work: check_device.DeviceFinding("fine")  # noqa: E731
    monkeypatch.setattr(check_device, "DEVICE_CHECKS", {"one": wrong, "two": right})
    report = new_report(CPU)
    lines = list(run_checks(DeviceWork(CPU), report))
    assert [line.split(" (")[0] for line in lines] == [
        "FAIL  one        ValueError: wrong",
        "ok    two        fine",
    ]
    assert not report.ok
    words = ["check-device", "cpu", "--results", str(tmp_path)]
    assert CliRunner().invoke(main.app, words).exit_code == 1
    assert read(only(tmp_path)).checks["one"]["said"] == "ValueError: wrong"


def only(results: Path) -> Path:
    """Return the one report in a folder of results."""
    (path,) = (results / "devices").iterdir()
    return path


def test_the_report_is_written_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(work: DeviceWork) -> Any:
        raise KeyboardInterrupt

    right = lambda work: check_device.DeviceFinding("fine")  # noqa: E731
    monkeypatch.setattr(check_device, "DEVICE_CHECKS", {"one": right, "two": stop})
    words = ["check-device", "cpu", "--results", str(tmp_path)]
    assert CliRunner().invoke(main.app, words).exit_code == 130
    assert list(read(only(tmp_path)).checks) == ["one"]


def test_speeds_of_a_busy_machine_are_said_to_be_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_device, "cpu_count", lambda: 2)
    monkeypatch.setattr(check_device.torch, "set_num_threads", lambda n: None)
    for name, found in (("copy_bandwidth", 1.0), ("multiplied", 1.0), ("stepped", (1.0, 1.0))):
        monkeypatch.setattr(check_device, name, lambda *_, found=found: found)
    for load, said in ((2.0, False), (6.0, True)):
        monkeypatch.setattr(check_device.os, "getloadavg", lambda load=load: (load, 0, 0))
        passed, found = check_outcome(DEVICE_CHECKS["throughput"], ON_SHADOW)
        assert passed, found.said
        assert ("too low where 2.5 other processes want each CPU" in found.said) is said


def test_no_check_is_begun_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_device, "MINUTES", -1)
    report = new_report(CPU)
    assert all("FAIL" in line for line in run_checks(DeviceWork(CPU), report))
    assert set(report.checks) == set(DEVICE_CHECKS)


def test_another_gradient_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = check_device.value_and_gradient

    def wrong(loss: Any, contrast: Any, views: Any) -> Any:
        value, *gradients = real(loss, contrast, views)
        far = 1e-3 if views[0].device == SHADOW else 0.0
        return [value, *[gradient + far for gradient in gradients]]

    monkeypatch.setattr(check_device, "value_and_gradient", wrong)
    passed, found = check_outcome(DEVICE_CHECKS["losses"], ON_SHADOW)
    assert not passed
    assert "infonce, both_views, torch.float64: 1.0e-03 from the CPU's" in found.said


def test_a_step_that_waits_fails_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = TabularDomain.contrasts

    def waiting(self: Any, model: Any, batch: Any) -> Any:
        contrasts = real(self, model, batch)
        contrasts[0].anchor.sum().item()
        return contrasts

    monkeypatch.setattr(TabularDomain, "contrasts", waiting)
    passed, found = check_outcome(DEVICE_CHECKS["steps"], ON_SHADOW)
    assert not passed
    assert "waits at" in found.said


def test_numbers_that_do_not_repeat_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count()
    real = TabularDomain.contrasts

    def drifting(self: Any, model: Any, batch: Any) -> Any:
        next(model.parameters()).data.add_(1e-3 * next(count))
        return real(self, model, batch)

    monkeypatch.setattr(TabularDomain, "contrasts", drifting)
    work = DeviceWork(CPU, ("tabular",), small=True)
    said = [check_outcome(DEVICE_CHECKS[name], work)[1].said for name in ("cells", "resume")]
    assert "tabular: two runs have other numbers: from epoch 1 on" in said[0]
    assert "differs after an interruption at step" in said[1]
