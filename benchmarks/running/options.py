"""Options of a run, which change no number except through the device."""

from dataclasses import dataclass
from pathlib import Path

from contrastbench.errors import UserError


@dataclass(frozen=True)
class Options:
    """Folders of data and results, and what computes."""

    results: Path = Path("results")
    data_root: Path | None = None  # a folder that already holds the data files
    device: str = "auto"  # cpu, cuda, cuda:1, ... or auto: CUDA where there is one
    threads: int | None = None  # CPU threads; None: what suits the domain
    deterministic: bool = True  # an accelerator repeats its numbers
    tf32: bool = False  # an accelerator multiplies float32 in TensorFloat-32
    compile: bool = False  # the encoder by torch.compile, and steps as CUDA graphs
    export: Path | None = None  # a folder for the trained model, of domains that can
    tensorboard: Path | None = None  # a folder with a subfolder for each training
    devices: int = 1  # of each training of a sweep


def check_data_root(data_root: Path | None) -> None:
    """Raise unless it is a folder."""
    if data_root is not None and not data_root.is_dir():
        raise UserError(f"data root {data_root} does not exist: name a folder that holds the data")
