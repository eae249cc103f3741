"""What an attack found, as a line of the run's summary."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def found(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    return lambda text: record_property("attack", text)


@pytest.fixture
def ram() -> Iterator[Path]:
    """A folder in memory, where the system has that: no disk to wait for."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
