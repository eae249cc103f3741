"""Write scalars of a training for TensorBoard while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contrastbench.benchmarks.running.training import Log
from contrastbench.errors import UserError


def check() -> None:
    """Raise unless TensorBoard's writer is installed."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        fix = 'pip install "contrastbench[tensorboard]"'
        raise UserError(f"--tensorboard needs tensorboard, which is not installed: {fix}") from None


@contextmanager
def scalars(folder: Path | None) -> Iterator[Log | None]:
    """Yield a function that writes scalars by name and step; None without a folder."""
    if folder is None:
        yield None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        yield writer.add_scalar
