"""Fixtures shared by all tests."""

import os

# before torch starts: small models train fastest on one thread, and some tests compare bits
os.environ.setdefault("OMP_NUM_THREADS", "1")

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import durations
from counts import SCALE, SEED

SHARED = Path(os.environ.get("CONTRASTBENCH_SHARED", Path(__file__).parents[2] / "shared"))

# what a shell starts in its background ignores Ctrl-C, and so would all processes of the tests
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """The same random numbers and threads in whatever order tests run."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)  # a run takes those of its domain


@pytest.fixture(autouse=True, scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Frames of packs that go when the tests end."""
    folder = tmp_path_factory.mktemp("frames")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrastbench.benchmarks.records.frame.cache_folder", lambda: folder)
        yield


@pytest.fixture
def shared() -> Callable[..., Path]:
    """A path in the optional full-size material; the test is skipped where it is absent."""

    def find(*parts: str) -> Path:
        path = SHARED.joinpath(*parts)
        if not path.exists():
            pytest.skip(
                f"optional material is not here: {path}; CONTRASTBENCH_SHARED names its folder"
            )
        return path

    return find


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run the command in an empty folder: exit code, standard output, standard error."""
    from contrastbench.benchmarks.cli import main as cli
    from contrastbench.benchmarks.running import launch

    monkeypatch.chdir(tmp_path)
    for name in ("CONTRASTBENCH_DATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bench", *words])
        # the real ones are for a whole process
        monkeypatch.setattr(cli, "end_on_sigterm", lambda: None)
        monkeypatch.setattr(launch, "private_channel", lambda: sys.stdout)
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code or 0, *capsys.readouterr())

    return call


@pytest.fixture
def moment() -> Iterator[None]:
    """Read each record once in the test, as commands do."""
    from contrastbench.benchmarks.records.read_cache import one_moment

    with one_moment():
        yield


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and nothing that was downloaded before."""

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    for name in ("pooch.retrieve", "requests.head"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.setattr(
        "contrastbench.domains.download.cache_folder", lambda: tmp_path / "no cache"
    )


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentence sets may be smaller than the published ones."""
    monkeypatch.setattr("contrastbench.domains.sentence.data.DECLARED_ROWS", {})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as `slow` by their recorded durations, and as `counted` by their use of counts."""
    slow = durations.slow()
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")
        if hasattr(getattr(item, "module", None), "times"):
            item.add_marker("counted")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the attacks with their counts, see tests/attack."""
    found = [
        (name, value, report.duration)
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for name, value in getattr(report, "user_properties", ())
        if report.when == "call"
    ]
    lines = [f"{text} ({took:.0f} s)" for name, text, took in found if name == "attack"]
    kills = [value for name, value, _ in found if name == "kills"]
    if kills:
        tried, hits = map(sum, zip(*kills, strict=True))
        lines.append(f"store, in all: {tried} kills, {100 * hits / tried:.0f} % within a write")
    if lines:
        terminalreporter.section("attacks")
        for line in sorted(lines):
            terminalreporter.line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line at which scale the tests counted."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(config, "workerinput"):
        reporter.line(f"counts: {SCALE:g} of the full ones (CONTRASTBENCH_TESTS), seed {SEED}")
