"""What a record says of its machine: devices, their settings, versions and commits."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import devices, provenance, runner
from contrastbench.benchmarks.running.devices import circumstances, environment
from contrastbench.benchmarks.running.history import History
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.provenance import Provenance
from contrastbench.losses.spec import LossSpec

CUDA = torch.device("cuda")


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch's switches are for the whole process."""
    for variable in devices.REPEATABLE:
        monkeypatch.delenv(variable, raising=False)
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    fills = torch.utils.deterministic.fill_uninitialized_memory
    products = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_deterministic_debug_mode("default")
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = flags
    torch.utils.deterministic.fill_uninitialized_memory = fills
    torch.set_float32_matmul_precision(products[0])
    torch.backends.cudnn.allow_tf32 = products[1]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    properties = SimpleNamespace(total_memory=80 * 2**30)
    for name, answer in {
        "get_device_name": "NVIDIA H100",
        "get_device_properties": properties,
        "device_count": 4,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(torch.version, "cuda", "13.2")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 92600)
    monkeypatch.setattr(devices, "driver", lambda: "580.65.06")
    return properties


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_accelerator_is_set_up(
    deterministic: bool, as_before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(name: str) -> str:
        there = [os.environ.get(variable) for variable in devices.REPEATABLE]
        assert there == ([":4096:8", "1"] if deterministic else [None, None]), "set before CUDA is"
        return "cuda:1"

    current: list[torch.device] = []
    monkeypatch.setattr(devices, "choose_device", started)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    assert devices.open_device("auto", deterministic, tf32=not deterministic) == torch.device(
        "cuda:1"
    )
    assert current == [torch.device("cuda:1")]
    assert torch.are_deterministic_algorithms_enabled() is deterministic
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.backends.cudnn.deterministic is deterministic
    assert torch.backends.cudnn.benchmark is not deterministic
    assert torch.backends.cuda.matmul.allow_tf32 is not deterministic
    expected = {"deterministic": deterministic, "tf32": not deterministic}
    assert devices.describe(torch.device("mps")).items() >= expected.items()
    assert devices.describe(torch.device("cpu")).keys() == {"device", "cpu"}


def test_the_record_names_card_and_libraries(card: SimpleNamespace, as_before: None) -> None:
    devices.set_up(deterministic=True, tf32=False)
    found = environment(CUDA)
    named = {"device": "NVIDIA H100", "device_memory_gib": 80.0, "device_count": 4}
    assert found.items() >= named.items()
    assert (found["deterministic"], found["tf32"]) == (True, False)
    assert environment(torch.device("cuda:3"))["device_index"] == 3
    versions = {name: found["versions"][name] for name in ("cuda", "cudnn", "driver")}
    assert versions == {"cuda": "13.2", "cudnn": "92600", "driver": "580.65.06"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\x1b(R)\n"
            "stepping\t: 7\n\nprocessor\t: 1\nmodel name\t: other\n",
            "Xeon\\x1b(R), cpu family 6, model 85, stepping 7",
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "0xd0c"),
        ("", "made"),
        (None, "made"),
    ],
)
def test_the_record_names_the_model_of_the_cpu(
    text: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(devices, "CPUINFO", file)
    monkeypatch.setattr(devices.platform, "processor", lambda: "made")
    devices.cpu_model.cache_clear()
    try:
        assert environment(torch.device("cpu"))["cpu"] == name
    finally:
        devices.cpu_model.cache_clear()


@pytest.mark.parametrize("what", ["deterministic", "tf32", "memory", "cuda", "driver", "how many"])
def test_a_training_that_goes_on_otherwise_promises_nothing(
    what: str, card: SimpleNamespace, as_before: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.set_up(deterministic=True, tf32=False)
    history = History()
    assert history.go_on(circumstances(CUDA))
    assert history.go_on(circumstances(CUDA))
    changes = {
        "deterministic": lambda: devices.set_up(deterministic=False, tf32=False),
        "tf32": lambda: devices.set_up(deterministic=True, tf32=True),
        "memory": lambda: setattr(card, "total_memory", 40 * 2**30),
        "cuda": lambda: monkeypatch.setattr(torch.version, "cuda", "12.8"),
        "driver": lambda: monkeypatch.setattr(devices, "driver", lambda: "535.1"),
        "how many": lambda: monkeypatch.setattr(torch.cuda, "device_count", lambda: 8),
    }
    changes[what]()
    same = what == "how many"  # others compute there
    assert history.go_on(circumstances(CUDA)) is same
    assert ("equal_to_uninterrupted" in history.details) is not same


def test_an_operation_that_cannot_repeat_its_numbers_names_the_option(
    tmp_path: Path, as_before: None
) -> None:
    """`put_` has no deterministic kernel, not even on a CPU."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\nfrom contrastbench.losses import Loss\n\n\n"
        "class Mine(Loss):\n    def forward(self, contrast):\n"
        "        torch.zeros(2).put_(torch.tensor([0]), torch.ones(1))\n"
    )
    torch.set_deterministic_debug_mode("error")
    experiment = Experiment("graph", "motifs", LossSpec(f"{file}:Mine"), {"epochs": 1, "limit": 60})
    record, _ = runner.run_cell(experiment, 0, Options(tmp_path, device="cpu"))
    expected = "put_ does not have a deterministic implementation on this device: give "
    assert record["details"]["error"] == expected + "--no-deterministic"


@pytest.mark.parametrize(
    ("said", "version"), [("580.65.06\n580.65.06\n", "580.65.06"), ("", None), (None, None)]
)
def test_the_driver_is_what_its_tool_says(
    said: str | None, version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said is not None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\nprintf '{said}'\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep if said is not None else None)
    devices.driver.cache_clear()
    assert devices.driver() == version
    devices.driver.cache_clear()


COMMIT = "90f897c0d8b6a1f9a1a2b3c4d5e6f708192a3b4c"
ADDRESS = {"url": "https://example.org/contrastbench", "vcs_info": {"commit_id": COMMIT}}
STALE = "0.1.1.dev3+g90f897c0d"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose editable install is older than its last commit."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init")
    (folder / "file").write_text("1")
    git(folder, "add", "file")
    git(folder, "commit", "-m", "one")
    package = SimpleNamespace(version=STALE, read_text=lambda name: None)
    monkeypatch.setattr(provenance, "distribution", lambda name: package)
    return folder


@pytest.mark.parametrize(
    ("version", "source", "commit"),
    [
        ("0.1.0", ADDRESS, COMMIT),
        (STALE, {"url": "file:///there", "dir_info": {}}, "90f897c0d"),
        ("0.1.1.dev3+g90f897c0d.d20261122", None, "90f897c0d+changes"),
        ("0.1.0", None, None),
    ],
)
def test_an_installed_package_says_its_commit(
    version: str, source: object, commit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if source is None else json.dumps(source)
    package = SimpleNamespace(version=version, read_text=lambda name: text)
    monkeypatch.setattr(provenance, "distribution", lambda name: package)
    assert provenance.of_installation() == Provenance(version, commit)


@pytest.mark.parametrize("tag", ["", "v0.2.0"])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_the_version_of_a_checkout_names_its_commit(
    checkout: Path, tag: str, ahead: bool, changed: bool
) -> None:
    if tag:
        git(checkout, "tag", tag)
    if ahead:
        git(checkout, "commit", "--allow-empty", "-m", "two")
    if changed:
        (checkout / "file").write_text("2")
    found = provenance.of_folder(checkout)
    head = git(checkout, "rev-parse", "HEAD")
    assert found.commit == head + "+changes" * changed
    assert found.version is not None
    base, _, local = found.version.partition("+")
    assert base == (tag.removeprefix("v") or "0")
    if tag and not ahead and not changed:
        assert local == "", "the release itself"
    else:
        named = re.fullmatch(r"g([0-9a-f]{9})(\.changes)?", local)
        assert named, found.version
        assert head.startswith(named[1])
        assert bool(named[2]) is changed


def test_a_checkout_that_git_cannot_read_names_neither(checkout: Path) -> None:
    (checkout / ".git" / "HEAD").unlink()
    assert provenance.of_folder(checkout) == Provenance(None, None)


def test_the_commit_is_that_of_the_code_that_was_loaded(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "ROOT", checkout)
    provenance.provenance.cache_clear()
    try:
        first = provenance.provenance()
        git(checkout, "commit", "--allow-empty", "-m", "two")
        assert provenance.provenance() == first
    finally:
        provenance.provenance.cache_clear()
