"""A sweep's worker whose cells are nothing but a write, and which SIGKILL ends soon.

Its argument says how many seconds after its first write begins; without one it lives on. Beside the
results it leaves a file for each death.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from forked import disk_takes
from made_records import record_of


def run(
    experiment: Experiment, seed: int, options: Options, *_cores_and_turn: Any
) -> tuple[Any, Path]:
    """The runner's, without a training."""
    record = record_of(experiment, seed)
    path = store.record_path(options.results, record)
    if sys.argv[1:]:
        threading.Timer(float(sys.argv.pop()), die, (options.results,)).start()
    store.publish_record(record, path)
    return record, path


def die(results: Path) -> None:
    """Whatever it is at, of which the name of a file says whether it is a write."""
    within = any(results.rglob(f".*.{os.getpid()}.*"))  # whoever writes next removes it
    (results.parent / f"dead-{os.getpid()}{'-within' * within}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run as a worker."""
    runner: Any = ModuleType("runner")
    runner.run_cell = run
    opening: Any = ModuleType("opening")
    opening.NoData = opening.NoMemory = type("Never", (Exception,), {})
    sys.modules["contrastbench.benchmarks.running.runner"] = runner
    sys.modules["contrastbench.benchmarks.running.opening"] = opening
    from contrastbench.benchmarks.sweeps import worker

    disk_takes(0.001)
    worker.main()


if __name__ == "__main__":
    main()
