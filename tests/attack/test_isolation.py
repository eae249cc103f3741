"""Cells that go wrong in every way stop no other, and the record says what happened."""

import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from contrastbench.benchmarks.records import store

MAIN = [sys.executable, "-P", "-c", "from contrastbench.benchmarks.cli.main import main; main()"]
LOSSES = """
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import torch
from contrastbench.losses import ScoreLoss


class Steps(ScoreLoss):
    steps = 0

    def terms(self, scores):
        self.steps += 1
        if self.steps == 2:
            self.go_wrong()
        value = scores.log_denominator(scores.pos, scores.neg) - scores.pos
        return value / 0 if self.steps >= 2 and self.diverges else value

    diverges = False

    def go_wrong(self):
        pass


class Killed(Steps):
    def go_wrong(self):
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does where memory is short


class Hungry(Steps):
    def go_wrong(self):
        raise MemoryError("not so much")


class Raises(Steps):
    def go_wrong(self):
        raise RuntimeError("as bad as can be")


class Exits(Steps):
    def go_wrong(self):
        sys.exit(3)


class Diverges(Steps):
    diverges = True


class Prints(Steps):
    def go_wrong(self):
        print("x" * 4_000_000)
        print("y" * 4_000_000, file=sys.stderr)


class Leaves(Steps):
    def go_wrong(self):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with Path("grandchildren").open("a") as file:
            file.write(f"{child.pid} ")
        os._exit(7)
"""
NAMES = ("Killed", "Hungry", "Raises", "Exits", "Diverges", "Prints", "Leaves")
OTHERS = ("infonce", "none")


def test_one_bad_cell_stops_no_other(ram: Path, found: Callable[[str], None]) -> None:
    (ram / "bad.py").write_text(LOSSES)
    losses = ", ".join([*(f"bad.py:{name}" for name in NAMES), *OTHERS])
    (ram / "bad.yaml").write_text(f"seeds: 0\ndomains: {{graph: {{}}}}\nlosses: [{losses}]\n")
    words = ("sweep", "bad.yaml", "--tiny", "--device", "cpu", "--no-check")
    done = subprocess.run([*MAIN, *words], cwd=ram, capture_output=True, text=True, timeout=500)
    assert done.returncode == 1, done.stderr[-2000:]
    children = [int(word) for word in (ram / "grandchildren").read_text().split()]
    assert all(Path(f"/proc/{child}").exists() for child in children), "they were not waited for"
    for child in children:
        os.kill(child, signal.SIGKILL)
    assert done.stdout.splitlines()[-1] == "9 cells: 0 done before, 3 now, 6 without a result"
    said = {line.split(", seed 0: ")[0]: line for line in done.stdout.splitlines()[:-1]}
    for name, why in {
        "Killed": "failed: the process was killed by SIGKILL (out of memory?)",
        "Leaves": "failed: the process ended with exit code 7: it said nothing",
        "Hungry": "oom: not so much",
        "Raises": "failed: RuntimeError('as bad as can be')",
        "Exits": "failed: SystemExit(3)",
        "Diverges": "diverged: the loss is ",
    }.items():
        assert why in said[f"graph motifs bad.py:{name}"]
    records = [store.read(path) for path in (ram / "results").glob("runs/*/*/*/*.json")]
    # those whose process was killed, or left, can say nothing
    assert Counter(record["status"] for record in records) == {
        **{"ok": len(("Prints", *OTHERS)), "diverged": 1, "oom": 1},
        "failed": len(("Raises", "Exits")),
    }
    (about,) = (r["details"] for r in records if r["status"] == "diverged")
    assert about["step"] == 2
    assert all(map(math.isfinite, [*about["losses_before"], *about["loss_by_epoch"]]))
    found(f"isolation: {len(NAMES)} bad losses beside others: every other cell finished")
