"""Open exported encoders in Python and embed any data with them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.benchmarks.api.cells import data_folder
from contrastbench.domains import exported

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from contrastbench.domains.exported import Encoder as DomainEncoder
    from contrastbench.domains.exported import Samples


@dataclass(frozen=True)
class Encoder:
    """An encoder of one domain with frozen weights."""

    domain: str
    opened: "DomainEncoder"

    def embed(self, data: Any) -> "NDArray[float32]":
        """Return an embedding of each sample, (samples, d) float32.

        A sample has the same embedding, whatever stands beside it.

        Args:
            data: image: an array or tensor of pictures, a list of PIL images or files, or a folder.
                sentence: a list of strings. graph: a list of torch_geometric's `Data`.
                tabular: a data frame, an array, or the path of a CSV or Parquet file.

        Raises:
            UserError: the data do not fit the encoder; the message names the fix.
        """
        return self.opened.embed(data).numpy()

    def read(self, dataset: str, data_root: Path | None = None) -> "Samples":
        """Return the samples of a data set, such as `"csv:new.csv"`, which need no classes."""
        return self.opened.read(dataset, data_root)


def encoder(
    folder: str | Path, *, device: str = "auto", data_root: str | Path | None = None
) -> Encoder:
    """Open an encoder that `bench run --export` wrote.

    Args:
        folder: that was exported, or a name such as `torchvision:resnet50`.
        device: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        data_root: a folder that may hold the weights of a name; by default CONTRASTBENCH_DATA's.

    Raises:
        UserError: there is no such encoder, or it is damaged.
    """
    root = data_folder(data_root)
    domain = exported.domain_of(str(folder))
    from contrastbench.benchmarks.running.devices import open_device

    opened = exported.open_encoder(str(folder), domain, root, open_device(device))
    return Encoder(domain, opened)
