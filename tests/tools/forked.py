"""Processes to be killed, or only looked at: one has imported what they need, and forks them.

`python forked.py MODULE` reads lines of JSON, each a list of lives that are lived side by side: the
name of a function of the module, its arguments, and the death, which is None, seconds after which
SIGKILL comes, or seconds and another signal. It answers with their wait statuses, as `os.waitpid`
has them. What all lives share, the module's `prepare` does before. A test asks by `Lives`.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

ALONE = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}  # a fork takes no threads along


class Lives:
    """The process that forks, seen from a test."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self()  # until it has imported everything: lives are timed

    def __call__(self, *lives: Any) -> list[int]:
        """How these lives ended, once all have."""
        print(json.dumps(lives), file=self.process.stdin, flush=True)
        assert self.process.stdout
        return list(json.loads(self.process.stdout.readline()))

    def seconds(self, *life: Any) -> float:
        """How long this one lives if nobody kills it."""
        start = time.perf_counter()
        assert self((*life, None)) == [0]
        return time.perf_counter() - start


@contextmanager
def lives(module: ModuleType) -> Iterator[Lives]:
    """Whoever lives the functions of a module."""
    command = [sys.executable, "-P", __file__, str(module.__file__)]
    env = {**os.environ, **ALONE}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        yield Lives(process)
        assert process.stdin
        process.stdin.close()


def disk_takes(seconds: float) -> None:
    """That long for each sync: in memory a kill would seldom hit a write."""
    sync = os.fsync

    def slowly(handle: int) -> None:
        time.sleep(seconds)
        sync(handle)

    os.fsync = slowly  # type: ignore[assignment]


def start(module: ModuleType, name: str, *arguments: object) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = getattr(module, name)(*arguments) or 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def lives_on(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def kill(deaths: list[tuple[float, int, int]]) -> None:
    """Send signals, each at its moment: seconds from now, the process, the signal.

    A moment was drawn from a life that may have been long because the machine was busy: nobody
    waits for that of a process that has ended.
    """
    begun = time.monotonic()
    for after, pid, number in sorted(deaths):
        while lives_on(pid) and (left := begun + after - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))
        os.kill(pid, number)


def main(module: ModuleType) -> None:
    """Fork, kill and bury, line by line."""
    for line in sys.stdin:
        started = [(death, start(module, *words)) for *words, death in json.loads(line)]
        pairs = [(d if isinstance(d, list) else [d, signal.SIGKILL], pid) for d, pid in started]
        kill([(after, pid, number) for (after, number), pid in pairs if after is not None])
        print(json.dumps([os.waitpid(pid, 0)[1] for _, pid in started]), flush=True)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    sys.path[:0] = [str(path.parent)]
    module = importlib.import_module(path.stem)
    module.prepare()
    main(module)
