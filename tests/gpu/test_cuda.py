"""What only a CUDA device can show; `pytest -m gpu` there, `bench check-device cuda` for users."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from compiled import CASES, experiment, ordinary, trained
from contrastbench.benchmarks.checks.device import DeviceWork, run_checks
from contrastbench.benchmarks.cli import main
from contrastbench.benchmarks.perf import losses as perf_losses
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.compiling import STEP
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.losses.spec import LossSpec

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]


@pytest.fixture(autouse=True)
def device() -> Iterator[torch.device]:
    yield open_device("cuda")
    torch.set_deterministic_debug_mode("default")


def test_the_device_passes(device: torch.device) -> None:
    assert [one for one in run_checks(DeviceWork(device)) if not one.passed] == []


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("tf32", [True, False])
def test_the_record_says_what_the_numbers_were_made_with(
    deterministic: bool, tf32: bool, tmp_path: Path
) -> None:
    experiment = make_experiment("tabular", None, LossSpec("adnce"), {}, tiny=True)
    options = Options(tmp_path, device="cuda", deterministic=deterministic, tf32=tf32)
    record, _ = run_cell(experiment, 0, options)
    said = record["environment"]
    assert (said["deterministic"], said["tf32"]) == (deterministic, tf32)
    assert said["device"] == torch.cuda.get_device_name()
    assert said["device_memory_gib"] > 1
    assert {"cuda", "cudnn", "driver"} <= set(said["versions"])


def test_files_reach_the_device_as_they_are(
    tmp_path: Path, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through pinned memory, unwaited for, and used at once."""
    pytest.importorskip("PIL")
    from contrastbench.domains.image.data import images
    from contrastbench.domains.image.data.images import ImageFiles
    from contrastbench.domains.image.data.own import load_images
    from made_images import CPU, folder

    expected = load_images(f"folder:{folder(tmp_path, count=40)}", 16, None, CPU)[0].train
    monkeypatch.setattr(images, "RESIDENT_SHARE", 0.0)
    found = load_images(f"folder:{tmp_path}", 16, None, device)[0].train
    assert isinstance(found, ImageFiles)
    parts = torch.arange(len(found), device=device).split(8)
    batch = found.ahead(parts)
    for number, rows in enumerate(parts):
        pixels = batch(number).pixels
        assert pixels.device.type == "cuda"
        assert torch.equal((pixels + 0).cpu(), expected.batch(rows.cpu()))


@pytest.mark.parametrize("names", ["graph motifs", "image digits", "tabular digits-table"])
def test_perf_runs_there(names: str) -> None:
    pytest.importorskip("torch_geometric")
    result = CliRunner().invoke(main.app, ["perf", *names.split(), "--device", "cuda"])
    assert result.exit_code == 0, result.output
    assert torch.cuda.get_device_name() in result.output


@pytest.mark.parametrize("case", sorted({*CASES} - {"images, hard"}))  # whose steps are no graphs
def test_captured_steps_have_the_numbers_of_ordinary_ones(case: str, device: torch.device) -> None:
    work = experiment(*CASES[case])
    plain, course = ordinary(work, device)
    captured, quick = trained(work, device, lambda *_: [STEP])
    assert course == quick
    assert all(torch.equal(x, captured[name]) for name, x in plain.items())


def test_a_cell_of_perf_is_measured_on_the_device(device: torch.device) -> None:
    assert "MB" in perf_losses.measured_entry("infonce", 512, device)
