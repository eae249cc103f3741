"""A Python that starts in milliseconds: its processes are forks of one that has imported torch.

`python()` is the path of a program that stands in for `sys.executable` and knows `-m MODULE` and
`-c CODE`. It hands its words, environment, folder, input and outputs to a server, which forks. It
passes signals on to the fork and ends as the fork ends; where it is killed, the fork is too. The
`sys.executable` of a fork is this program again, so that workers and ranks start like that.
"""

import atexit
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NoReturn

PROGRAM = """#!{python} -ES
import json, os, signal, socket

server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
about = {{"words": __import__("sys").argv[1:], "folder": os.getcwd(), "env": dict(os.environ)}}
socket.send_fds(server, [json.dumps(about).encode()], [0, 1, 2])
told = server.makefile()
pid = int(told.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
status = int(told.readline())
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
os._exit(os.WEXITSTATUS(status))
"""


@cache
def python() -> str:
    """Start the server of this process and return the path of its program."""
    folder = Path(mkdtemp())
    path, program = folder / "server", folder / "python"
    program.write_text(PROGRAM.format(python=sys.executable, path=str(path)))
    program.chmod(0o700)
    command = [sys.executable, "-P", __file__, str(path), str(program)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"
    atexit.register(server.communicate)
    return str(program)


def bench(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder, in a process of its own."""
    command = [python(), "-m", "contrastbench", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)


def serve(path: str, program: str) -> None:
    """Fork for each program that asks, until standard input ends; then remove the program."""
    imported()
    sys.executable = program
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while listener in select.select([listener, 0], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if not os.fork():
                    listener.close()
                    keep(connection)
    shutil.rmtree(Path(path).parent)


def imported() -> None:
    """Import what trainings on graphs need."""
    import sklearn.svm  # noqa: F401
    import torch._dynamo  # noqa: F401

    import contrastbench.benchmarks.running.ranks
    import contrastbench.benchmarks.running.runner
    import contrastbench.domains.graph.domain  # noqa: F401


def keep(connection: socket.socket) -> NoReturn:
    """Fork the process that was asked for, and tell how it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, files, *_ = socket.recv_fds(connection, 1 << 20, 3)
    pid = os.fork()
    if not pid:
        connection.close()
        live(files, **json.loads(data))
    for file in files:
        os.close(file)
    connection.sendall(b"%d\n" % pid)
    if connection in select.select([connection, os.pidfd_open(pid)], [], [])[0]:
        os.kill(pid, signal.SIGKILL)  # whoever asked is gone
    status = os.waitpid(pid, 0)[1]
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % status)
    os._exit(0)


def live(files: list[int], words: list[str], folder: str, env: dict[str, str]) -> NoReturn:
    """Become the started process."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    code: Any = 0
    try:
        run([word for word in words if word not in ("-P", "-u")])
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


def run(words: list[str]) -> None:
    """Run a module or code with its words."""
    kind, what, *rest = words
    sys.argv = [kind, *rest]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(what, {"__name__": "__main__"})


if __name__ == "__main__":
    serve(*sys.argv[1:])
