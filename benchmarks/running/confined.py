"""Run somebody else's program apart: in a folder, without secrets, and confined if possible.

Bubblewrap confines it, where the system has it and lets it work: the program then has no network,
and sees no files but those that it needs.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from contrastbench.benchmarks.running.environment import DECIDING
from contrastbench.benchmarks.running.provenance import ROOT
from contrastbench.domains.download import cache_folder

KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CONTRASTBENCH_DATA")
KEPT_STARTS = (*DECIDING, "OMP_", "ATEN_", "CUDA_", "KMP_")
# of the system: programs and libraries, and what they ask of the machine
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/sys"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
)
BUBBLE = [
    *("bwrap", "--unshare-all", "--die-with-parent", "--dev", "/dev", "--proc", "/proc"),
    # root may write to all that is mounted and to settings of the kernel, unless it is kept from it
    *("--cap-drop", "ALL", "--ro-bind", "/proc/sys", "/proc/sys"),
]


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for a program alone; it goes with all that the program has left there.

    TemporaryDirectory would follow links in it, in Python before 3.11.8.
    """
    folder = Path(mkdtemp(prefix="contrastbench-")).resolve()
    try:
        yield folder
    finally:
        with suppress(OSError, RecursionError):
            shutil.rmtree(folder)


def all_apart(
    do: Callable[[Any], None], work: Iterable[Any], jobs: int, stop: threading.Event
) -> None:
    """Do all work in threads that wait for children; what ends one, or this side, ends them all."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(do, one) for one in work]
        try:
            for one in as_completed(waiting):
                one.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def run_apart(
    command: Sequence[str], folder: Path, seconds: float, stop: threading.Event, *seen: Path
) -> str:
    """Run a command in a folder, to its end, for so long or until a stop, and say how it ended.

    All that it has started is killed with it, unless it left the group of its processes; confined,
    nothing can.

    Args:
        stop: set by another thread, ends it within a second.
        seen: files and folders that it reads.
    """
    variables = environment(folder / "home")
    start = bubble(folder, *seen, cache_folder(), Path(variables["HF_HUB_CACHE"]))
    given: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    given |= {"cwd": folder, "env": variables, "start_new_session": True}
    process, until = subprocess.Popen([*start, *command], **given), time.monotonic() + seconds
    try:
        while time.monotonic() < until and not stop.is_set():
            with suppress(subprocess.TimeoutExpired):
                return f"ended with exit code {process.wait(min(1, seconds))}"
        return "was stopped" if stop.is_set() else f"was killed after {seconds:.0f} seconds"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a program: an empty home, in which downloaded data are linked."""
    link = home / ".cache/contrastbench"
    link.parent.mkdir(parents=True)
    link.symlink_to(cache_folder())
    hub = os.environ.get("HF_HUB_CACHE") or str(Path.home() / ".cache/huggingface/hub")
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith(KEPT_STARTS)}
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(link.parent)}
    return {**kept, **own, "HF_HUB_CACHE": hub}


def bubble(folder: Path, *seen: Path) -> list[str]:
    """Return the start of a command that confines the rest of it to a folder.

    It may read the system's programs, this Python with its packages, and what is `seen`. The list
    is empty where bubblewrap is missing or may not do this.
    """
    if not can_confine():
        return []
    modules = sys.path[not sys.flags.safe_path :]  # without the folder of the script, or this one
    read: tuple[str | Path, ...] = (*SYSTEM, sys.prefix, sys.base_prefix, ROOT, *modules, *seen)
    words = [*BUBBLE, "--tmpfs", "/tmp"]
    for path in dict.fromkeys(str(Path(one).absolute()) for one in read):
        words += ["--ro-bind-try", path, path]
    return [*words, "--bind", str(folder), str(folder), "--chdir", str(folder), "--"]


@cache
def can_confine() -> bool:
    """Return whether bubblewrap is here and this user may use it."""
    with suppress(OSError):
        command = [*BUBBLE, "--ro-bind", "/", "/", "true"]
        return not subprocess.run(command, capture_output=True).returncode
    return False
