"""The base of every domain: data, a model, batches that become contrasts, and a score."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from contrastbench.domains.declaration import TestPart
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.report import DataReport
from contrastbench.domains.samples import Samples
from contrastbench.errors import UnusableSamples, UserError
from contrastbench.losses.contrast import Contrast

RecipeT = TypeVar("RecipeT", bound=Recipe)
ModelT = TypeVar("ModelT", bound=nn.Module)
BatchT = TypeVar("BatchT")


@dataclass(frozen=True)
class Evaluation:
    """The measurements of a domain on a model; accuracies and correlations are in percent."""

    metrics: dict[str, float]
    main: str  # the metric that tables show
    validation: float | None = None  # what may choose hyperparameters
    folds: Sequence[float] = ()  # the main metric on each fold, where it is their mean
    inner: Sequence[float] = ()  # for each fold, the score within its training part
    right: Sequence[bool] = ()  # of each sample of one test part, whose share is the main metric
    samples: dict[str, int] = field(default_factory=dict)  # of train, validation and test part
    test_part: TestPart = "fixed"  # the set's own, drawn anew by each seed, or all samples in turn
    # for people: nothing here is read by other parts
    details: dict[str, Any] = field(default_factory=dict)


@contextmanager
def samples_drawn(recipe: Recipe) -> Iterator[None]:
    """Say of a mistake in the samples that another seed may do, where a `limit` draws them.

    Raises:
        UnusableSamples: in place of a UserError.
    """
    try:
        yield
    except UserError as error:
        if recipe.limit is None:
            raise
        raise UnusableSamples(str(error)) from None


class Domain(ABC, Generic[RecipeT, ModelT, BatchT]):
    """One dataset of one kind of data, ready to train and score models on.

    `contrasts` pairs the embeddings and knows no loss; a loss gets a `Contrast` and knows no
    domain. What only some domains can do are the protocols below. `bench check-domain NAME` holds a
    domain to all of it.

    Where several processes share a training, each gets every batch and makes the same contrasts.
    `domains.model.embed_together` embeds a part of the batch in each, which is faster and no other
    number.

    Args:
        dataset: its name, one that the domain declares or a user's own.
        recipe: how it is trained and scored on.
        seed: of everything that is drawn.
        data_root: a folder that already holds the data files.
        device: where models and batches live.

    Raises:
        UserError: the dataset cannot be had, or not by this recipe.
    """

    threads: int = 1  # CPU threads that suit the domain's model
    compiles: bool = False  # whether batches have one shape, for which `--compile` suits an encoder
    # why a step, from a batch to gradients, cannot be one CUDA graph: it reads from the device, or
    # changes what the host knows; empty if it can. Then `for_graph` gives batches alike in shape.
    uncaptured: str = "this domain does not say that its steps are alike"
    other_as_graph: str = ""  # what of the numbers differs then from ordinary steps, for people
    sha256: str  # of all content, where it both trains and scores: `read` sets it

    def __init__(
        self, dataset: str, recipe: RecipeT, seed: int, data_root: Path | None, device: torch.device
    ) -> None:
        self.dataset, self.recipe, self.seed = dataset, recipe, seed
        self.data_root, self.device = data_root, device
        self.read()

    def read(self) -> None:
        """Read the data, and raise unless the recipe fits them; all arguments are attributes."""

    def data_hash(self, trained: bool) -> str:
        """Sha256 over the content that scores the model and, if it is trained, trains it."""
        return self.sha256

    @abstractmethod
    def model(self) -> ModelT:
        """A freshly initialised model; the same for the same seed."""

    @abstractmethod
    def steps(self) -> int:
        """Number of batches in an epoch."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterable[BatchT]:
        """The training batches of an epoch; the same for the same seed and epoch."""

    @abstractmethod
    def contrasts(self, model: ModelT, batch: BatchT) -> Sequence[Contrast]:
        """Pair the views of a batch: return its contrasts."""

    def for_graph(self, batch: BatchT) -> Any:
        """Return the batch as a CUDA graph takes it: a dataclass of the same shape each time."""
        return batch

    @abstractmethod
    def evaluate(self, model: ModelT) -> Evaluation:
        """The score of the model's encoder by the domain's protocol."""

    def notes(self, trained: bool) -> dict[str, Any]:
        """Return notes on reading the data, for the record."""
        return {}

    def samples(self, trained: bool) -> Samples:
        """Return what a report asks of the samples that are used."""
        return Samples()

    def report(self, trained: bool) -> DataReport:
        """Return what the data hold, for people and for the record."""
        return DataReport.of(self.samples(trained))

    def check_export(self) -> None:
        """Raise UserError unless models of this recipe can be exported: they have weights."""
        if not self.recipe.trainable:
            encoder = getattr(self.recipe, "encoder", "none")
            raise UserError(f"encoder={encoder} has no weights to export: leave --export out")

    def check_untrained(self) -> None:
        """Raise UserError if the model cannot be scored as it is initialised; most can."""
        return


@runtime_checkable
class Validates(Protocol):
    """A domain that can choose the best model where the recipe has `validate_every`."""

    def validate(self, model: Any) -> float:
        """The score of the model on validation data; larger is better."""


@runtime_checkable
class Exports(Protocol):
    """A domain whose models other libraries can load."""

    def export(self, model: Any, folder: Path) -> None:
        """Write the model into the folder."""


@runtime_checkable
class NumbersSamples(Protocol):
    """A domain whose contrasts have an `index`: the anchors' rows of the training set."""

    @property
    def sample_count(self) -> int:
        """Return how many samples the encoder is trained on."""


@runtime_checkable
class PairsByClass(Protocol):
    """A domain whose contrasts have classes as ids, if its recipe's `pairs_by_class` is true."""

    @property
    def class_count(self) -> int:
        """Return how many classes the training samples have."""

    @property
    def dim(self) -> int:
        """Dimensions of the embeddings that meet."""
