"""The file in which `bench check-device` tells of a device."""

import json
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.device_report import DeviceReport, device_report_path
from contrastbench.losses import UserError


def test_a_report_is_written_as_json(tmp_path: Path) -> None:
    report = DeviceReport({"name": "NVIDIA H100"}, {"cuda": "13.2"}, busy=0.5)
    report.checks["losses"] = {"ok": True, "seconds": 2.0, "said": "all 18"}
    report.throughput["flops_float32"] = 5e13
    path = device_report_path(tmp_path, report.name)
    report.write(path)
    assert path == tmp_path / "devices" / "nvidia-h100.json"
    assert DeviceReport(**json.loads(path.read_text())) == report
    assert report.ok
    report.checks["resume"] = {"ok": False, "seconds": 1.0, "said": "differs"}
    assert not report.ok


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .* \(.*\): name another file"):
        DeviceReport({"name": "a"}, {}).write(tmp_path / "file" / "it.json")
