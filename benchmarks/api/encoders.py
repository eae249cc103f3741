"""Open trained encoders in Python: embed any data with them, and tell their classes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor, from_numpy, nn

from contrastbench.benchmarks.api.cells import data_folder, folder_argument
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.running.devices import open_device
from contrastbench.benchmarks.submission import reproduction
from contrastbench.domains import exported
from contrastbench.domains.probe import read_probe

if TYPE_CHECKING:
    from numpy import float32, float64, str_
    from numpy.typing import NDArray

    from contrastbench.benchmarks.records.store import Record
    from contrastbench.domains.exported import Listed


class Encoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, nn.Module):  # type: ignore[misc]
    """A trained encoder, as a transformer of scikit-learn and as a module of torch.

    Args:
        folder: that was exported, or a name such as `torchvision:resnet50`.
        device: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        data_root: a folder that may hold the weights of a name; by default CONTRASTBENCH_DATA's.
    """

    def __init__(
        self, folder: str, device: str = "auto", data_root: str | Path | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.folder, self.device, self.data_root = folder, device, data_root
        self.domain = exported.domain_of(folder)
        root = data_folder(data_root)
        self.opened = exported.open_encoder(folder, self.domain, root, open_device(device))
        self.network = self.opened.network

    def forward(self, *inputs: Any) -> Tensor:
        """(n, d) embeddings of inputs as the network takes them, with gradients."""
        embed: Any = getattr(self.network, "features", self.network)
        embeddings: Tensor = embed(*inputs)
        return embeddings

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

    def read(self, dataset: str, data_root: Path | None = None) -> "Listed":
        """Return the samples of a data set, such as `"csv:new.csv"`, which need no classes."""
        return self.opened.read(dataset, data_root)

    def fit(self, data: Any = None, y: Any = None) -> Self:
        """Return the encoder as it is: it has been trained."""
        return self

    def transform(self, data: Any) -> "NDArray[float32]":
        """Return what `embed` returns."""
        embeddings = self.embed(data)
        self._n_features_out = embeddings.shape[1]  # what `get_feature_names_out` counts
        return embeddings

    def predict_proba(self, data: Any) -> "NDArray[float64]":
        """Return the probability of each of `classes_`, (samples, classes).

        It is that of logistic regression, which was fitted with the encoder.

        Raises:
            UserError: the encoder has no such classifier, or the data do not fit.
        """
        return read_probe(Path(self.folder)).probabilities(from_numpy(self.embed(data))).numpy()

    def predict(self, data: Any) -> "NDArray[str_]":
        """Return the likeliest class of each sample."""
        return self.classes_[self.predict_proba(data).argmax(axis=1)]

    @property
    def classes_(self) -> "NDArray[str_]":
        """Return the names of the classes that the classifier knows."""
        import numpy as np

        return np.array(read_probe(Path(self.folder)).classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def encoder(
    record: "str | Path | Record",
    *,
    device: str = "auto",
    data_root: str | Path | None = None,
    results: str | Path = "results",
    trust: bool = False,
) -> Encoder:
    """Open the encoder of a record, or one that `bench run --export` wrote.

    A record keeps no weights. So its encoder is trained again, once, into the folder `encoders` of
    the results; the same machine makes the same numbers.

    Args:
        record: of `run`, its file or its name KEY-seedN; or a folder that was exported, or a name
            such as `torchvision:resnet50`.
        device: cpu, cuda, cuda:1, ... or auto: CUDA where there is one.
        data_root: a folder that may hold data and weights; by default CONTRASTBENCH_DATA's.
        results: the folder that holds runs/ with the records.
        trust: whether Python that the record holds or names may run.

    Raises:
        UserError: there is no such encoder, or it is damaged; or the record cannot be run again.
    """
    place, root = folder_argument("results", results), data_folder(data_root)
    if isinstance(record, str | Path):
        if not reproduction.is_record(str(record)):
            return Encoder(str(record), device, data_root)
        record = reproduction.named_record(str(record), [place, SHIPPED])
    where = None if device == "auto" else device  # a record of a CPU is made by one
    folder = reproduction.encoder_of(record, place, root, where, trust)
    return Encoder(str(folder), device, data_root)
