"""The file in which `bench check-device` tells of a device."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.records import device_report
from contrastbench.benchmarks.records.device_report import DeviceReport, place
from contrastbench.losses import UserError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    report = DeviceReport({"name": "NVIDIA H100"}, {"cuda": "13.2"}, busy=0.5)
    report.checks["losses"] = {"ok": True, "seconds": 2.0, "said": "all 18"}
    report.throughput["flops_float32"] = 5e13
    path = place(tmp_path, report.name)
    report.write(path)
    assert path == tmp_path / "devices" / "nvidia-h100.json"
    assert device_report.read(path) == report
    assert report.ok
    report.checks["resume"] = {"ok": False, "seconds": 1.0, "said": "differs"}
    assert not report.ok


ODD = '{"device": {}, "versions": {}, "throughput": [1]}'


@pytest.mark.parametrize(
    "text", ["", "[]", '{"device": {}}', '{"other": 1}', ODD, ODD.replace("[1]", '{"x": "fast"}')]
)
def test_another_file_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text(text)
    with pytest.raises(UserError, match=r"it\.json is no report on a device: bench check-device"):
        device_report.read(tmp_path / "it.json")
    with pytest.raises(UserError, match=r"cannot read .*none\.json \(No such file"):
        device_report.read(tmp_path / "none.json")


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .* \(.*\): name another file"):
        DeviceReport({"name": "a"}, {}).write(tmp_path / "file" / "it.json")
