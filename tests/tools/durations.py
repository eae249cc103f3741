"""The slow tier follows from recorded durations; `durations.py` records them anew.

Record them on an idle machine. The file names each test of 0.25 seconds or more at scale 0.1.
"""

import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from promises import PROMISES

FILE = Path(__file__).with_suffix(".json")
SLOW = 0.25  # seconds; shorter tests are not recorded


def slow() -> set[str]:
    """Return the tests that took 0.25 seconds or more and hold no promise."""
    held = set(PROMISES.values())
    return {test for test in json.loads(FILE.read_text()) if test.partition("[")[0] not in held}


class Recorder:
    """Add up the phases of each test, and write the durations of slow tests."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            found = {k: round(v, 2) for k, v in sorted(self.seconds.items()) if v >= SLOW}
            FILE.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    os.environ["CONTRASTBENCH_TESTS"] = "0.1"
    tests = str(FILE.parents[1])
    sys.exit(pytest.main(["--numprocesses", "auto", *sys.argv[1:], tests], plugins=[Recorder()]))
