"""Cells that go wrong in every way stop none of 39 others, and records say what happened.

One sweep has the bad ones between the good ones: killed for memory, hanging until somebody kills
it while its child lives on, gone and its child too, raising, leaving by itself, diverging in its
second step, printing megabytes.
"""

import math
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from contrastbench.benchmarks.records import store
from counts import times
from warm import bench

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


def leave_child(word):
    child = subprocess.Popen(["sh", "-c", word + "exec sleep 600"])
    with Path("grandchildren").open("a") as file:
        file.write(f"{child.pid} ")


class Diverges(Steps):
    diverges = True


class Prints(Steps):
    def go_wrong(self):
        print("x" * 4_000_000)
        print("y" * 4_000_000, file=sys.stderr)
"""
GONE_WRONG = """

class {}(Steps):
    def go_wrong(self):
        {}
"""
KILLED = "failed: the process was killed by SIGKILL (out of memory?)"
BAD = {  # what a class does in its second step, and what is said of its cell
    "Killed": ("os.kill(os.getpid(), signal.SIGKILL)", KILLED),  # as where memory is short
    "Hungry": ("raise MemoryError('not so much')", "oom: not so much"),
    "Raises": (
        "raise RuntimeError('as bad as can be')",
        "failed: RuntimeError('as bad as can be')",
    ),
    "Exits": ("sys.exit(3)", "failed: SystemExit(3)"),
    "Vanishes": ("raise BaseException('gone')", "failed: BaseException('gone')"),
    "Closes": ("raise GeneratorExit", "failed: GeneratorExit()"),
    "Mute": (
        "raise type('Silent', (Exception,), {'__str__': lambda _: 1 / 0})",
        "failed: RuntimeError('Silent, which cannot be written')",
    ),
    "Torn": (
        "raise ValueError('half a letter: ' + chr(0xD800))",
        "failed: RuntimeError('ValueError, which cannot be written')",
    ),
    "Moves": ("os.chdir('/')", "failed: bad calls os.chdir"),
    "Leaves": (
        "leave_child(''); os._exit(7)",
        "failed: the process ended with exit code 7: it said nothing",
    ),
    "Hangs": ("leave_child('kill -9 $PPID; '); signal.pause()", KILLED),
}
NAMES = (*BAD, "Diverges", "Prints")
GOOD = times(39, least=8)
TINY = "{epochs: 1, limit: 30, batch_size: 10, folds: 2, hidden: 8, layers: 2}"


def sweep_file() -> str:
    """The good ones, with a bad one before every few."""
    good = [f"infonce: {{temperature: {(k + 1) / GOOD:.3f}}}" for k in range(GOOD)]
    lines = [f"  - {{{line}}}" for line in good]
    few = math.ceil(GOOD / len(NAMES))
    for place, name in enumerate(NAMES):
        lines.insert((few + 1) * place, f"  - bad.py:{name}")
    head = f"seeds: 0\ndomains: {{graph: {{datasets: [motifs], recipe: {TINY}}}}}\nlosses:\n"
    return head + "\n".join(lines) + "\n"


def test_one_bad_cell_stops_no_other(ram: Path, found: Callable[[str], None]) -> None:
    wrong = "".join(GONE_WRONG.format(name, act) for name, (act, _) in BAD.items())
    (ram / "bad.py").write_text(LOSSES + wrong)
    (ram / "bad.yaml").write_text(sweep_file())
    done = bench(ram, "sweep", "bad.yaml", "--device", "cpu")  # whose workers start warm too
    assert done.returncode == 1, done.stderr[-2000:]
    children = [int(word) for word in (ram / "grandchildren").read_text().split()]
    assert all(Path(f"/proc/{child}").exists() for child in children), "they were not waited for"
    for child in children:
        os.kill(child, signal.SIGKILL)
    bad = len(NAMES) - 1  # one only prints
    last = f"{GOOD + bad + 1} cells: 0 done before, {GOOD + 1} now, {bad} without a result"
    assert done.stdout.splitlines()[-1] == last
    said = {line.split(", seed 0: ")[0]: line for line in done.stdout.splitlines()[:-1]}
    for name, (_, why) in {**BAD, "Diverges": ("", "diverged: the loss is ")}.items():
        assert why in said[f"graph motifs bad.py:{name}"]
    records = [store.read_record(path) for path in (ram / "results").glob("runs/*/*/*/*.json")]
    # those whose process was killed, or left, can say nothing
    assert Counter(record["status"] for record in records) == {
        **{"ok": GOOD + len(("Prints",)), "diverged": 1, "oom": 1},
        "failed": len(("Raises", "Exits", "Vanishes", "Closes", "Mute", "Torn", "Moves")),
    }
    (about,) = (r["details"] for r in records if r["status"] == "diverged")
    assert about["step"] == 2
    assert all(map(math.isfinite, [*about["losses_before"], *about["loss_by_epoch"]]))
    fine = sum(record["status"] == "ok" and record["loss"] == "infonce" for record in records)
    assert fine == GOOD
    found(f"isolation: {len(NAMES)} bad cells between others: {fine} of {GOOD} finished")
