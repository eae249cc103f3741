"""Declared sets of images, with their parts, files, sums and papers, and what users bring."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from contrastbench.domains import saved
from contrastbench.domains.declaration import Dataset, Source, declared_sets

CALTECH_FITTED = 30  # images of each class of Caltech-101 that are not tested


class Scoring(NamedTuple):
    """The criterion and the images that choose C, where an encoder is transferred to a set."""

    metric: str = "accuracy"
    share: float = 0.1  # of the training images, where the set has no validation part


ACCURACY = Scoring()


@dataclass(frozen=True)
class ImageDataset(Dataset):
    """A set of images: besides its source, how it is read and scored.

    Its `sizes` are classes, training and test images.
    """

    layout: str = ""  # of its files, in the reader's words
    # those that are taken of the classes of its files, or that FC100 tests; none: all
    classes: tuple[str, ...] = ()
    unlabelled: int = 0  # images without a class
    validation_part: str = ""  # its name, where its authors have one
    scoring: Scoring = ACCURACY

    @property
    def again(self) -> str:
        """Say what to do where its files are damaged or others."""
        return f"{'delete it and download' if self.sha256 else 'get'} {self.url} again"


DATASETS = declared_sets(Path(__file__).with_name("datasets.toml"), ImageDataset)
IMAGENET_100 = DATASETS["ImageNet-100"].classes
SOURCES = (
    Source("folder", "PATH", "train/CLASS/FILE, test/CLASS/FILE", "image", folder=True),
    Source("npz", "FILE", "arrays images, labels, test_images, test_labels", "image", (".npz",)),
    saved.source("pictures with a label, of the datasets library"),
)


def scoring(name: str) -> Scoring:
    return DATASETS[name].scoring if name in DATASETS else ACCURACY
