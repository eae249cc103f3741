"""Options of a run, which change no number except through the device."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from pathlib import Path

from contrastbench.domains.reading import missing
from contrastbench.errors import UserError, unknown

LOGGERS = ("csv", "mlflow", "tensorboard", "wandb")  # each is the name of its library and extra
Hook = Callable[[int, dict[str, float]], object]  # gets the step or epoch, and its values


@dataclass(frozen=True)
class Options:
    """Folders of data and results, and what computes."""

    results: Path = Path("results")
    _: KW_ONLY
    data_root: Path | None = None  # a folder that already holds the data files
    device: str = "auto"  # cpu, cuda, cuda:1, ... or auto: CUDA where there is one
    threads: int | None = None  # CPU threads; None: what suits the domain
    deterministic: bool = True  # an accelerator repeats its numbers
    tf32: bool = False  # an accelerator multiplies float32 in TensorFloat-32
    compile: bool = False  # the encoder by torch.compile, and steps as CUDA graphs
    export: Path | None = None  # a folder for the trained model, of domains that can
    log: Sequence[str] | None = None  # of LOGGERS, which write into the folder logs/ of results
    on_step: Hook | None = None
    on_epoch: Hook | None = None
    devices: int = 1  # of each training of a sweep

    def __post_init__(self) -> None:
        for name in self.log or ():
            if name not in LOGGERS:
                raise unknown("logger", name, LOGGERS)
            if not find_spec(name):
                raise missing(f"--log {name}", name, name)


def check_data_root(data_root: Path | None) -> None:
    if data_root is not None and not data_root.is_dir():
        raise UserError(f"data root {data_root} does not exist: name a folder that holds the data")
