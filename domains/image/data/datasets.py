"""Declared sets of images, with their parts, files, sums and papers, and what users bring."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.domains import saved
from contrastbench.domains.declaration import Dataset, Source, by_name, declared_rows

CALTECH_FITTED = 30  # images of each class of Caltech-101 that are not tested
HERE = Path(__file__).parent


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


def class_disjoint() -> Iterator[ImageDataset]:
    """Yield the sets of metric learning that `disjoint.csv` has; the first place names its file."""
    for row in declared_rows(HERE / "disjoint.csv"):
        places = tuple(row["places"].split("|"))
        yield ImageDataset(
            *(row["name"], row["summary"], row["url"], "", places[0], row["citation"]),
            sizes=sizes_of(row),
            content=row["content"],
            places=places,
            reader="disjoint:load_disjoint",
            layout=row["layout"],
            scored_by={"probe": "retrieval"},
        )


def transfer_sets() -> Iterator[ImageDataset]:
    """Yield the sets that encoders are transferred to, which `transfer.csv` has.

    The layout is the class of torchvision that knows its files, and the share is that of the
    training images that validate, where the set has no validation part.
    """
    for row in declared_rows(HERE / "transfer.csv"):
        share = float(Fraction(row["share"] or "0.1"))
        yield ImageDataset(
            *(row["name"], row["summary"], row["url"], "", row["folder"], row["citation"]),
            sizes=sizes_of(row),
            reader="transfer_sets:load_transfer",
            layout=row["layout"],
            validation_part=row["validation"],
            scoring=Scoring(row["metric"] or "accuracy", share),
        )


def sizes_of(row: Mapping[str, str]) -> tuple[int, int, int]:
    """Return how many classes, training and test images a set has."""
    return int(row["classes"]), int(row["train"]), int(row["test"])


KRIZHEVSKY = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009"
CIFAR_10: dict[str, Any] = {
    "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "sha256": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "file": "cifar-10-binary.tar.gz",
    "citation": KRIZHEVSKY,
    "content": "dd310cb17823bab56df92fdb9632ad8919772b1ca3fd78e6ed3008957b04fa07",
    "places": ("cifar10.zip", "cifar10/cifar10.zip", "cifar10"),  # of recoded pictures
    "layout": "cifar-10-batches-bin",
}
CIFAR_100: dict[str, Any] = {
    "url": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "sha256": "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    "file": "cifar-100-binary.tar.gz",
    "citation": KRIZHEVSKY,
    "layout": "cifar-100-binary",
}
IMAGENET: dict[str, Any] = {
    "url": "https://www.image-net.org",
    "file": "imagenet",
    "citation": "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015",
    "reader": "imagenet:load_imagenet",
}
TINY_IMAGENET: dict[str, Any] = {
    "url": "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    "sha256": "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
    "file": "tiny-imagenet-200.zip",
    "citation": "Le and Yang, Tiny ImageNet Visual Recognition Challenge, 2015",
    "places": ("tiny-imagenet-200",),
}
# aquatic mammals, insects, medium-sized mammals, people
FC100_TESTED = """
beaver dolphin otter seal whale bee beetle butterfly caterpillar cockroach fox porcupine possum
raccoon skunk baby boy girl man woman
"""
DTD_FIRST = """
banded blotchy braided bubbly bumpy chequered cobwebbed cracked crosshatched crystalline
"""
# imagenet100.txt of Tian et al., Contrastive Multiview Coding, 2020
IMAGENET_100 = tuple((HERE / "imagenet_100.txt").read_text(encoding="utf-8").split())
DATASETS = by_name(
    ImageDataset(
        "digits",
        "embedded: 1,797 handwritten digits of 8 x 8 pixels, 10 classes",
        citation="scikit-learn, UCI repository",
        licence="CC BY 4.0",
        reader="digits:load_embedded",
    ),
    ImageDataset(
        "shifted-digits",
        "embedded: the same digits, each moved by up to two pixels, so that no pixel tells much",
        citation="scikit-learn, UCI repository",
        licence="CC BY 4.0",
        reader="digits:load_shifted",
    ),
    ImageDataset(
        "CIFAR-10",
        "60,000 photographs of 32 x 32 pixels, 10 classes; last 10,000 test",
        **CIFAR_10,
        sizes=(10, 50_000, 10_000),
        reader="cifar:load_cifar",
    ),
    ImageDataset(
        "CIFAR-10-5k",
        "a fixed part of CIFAR-10: 500 photographs of each class to train on, 100 to test",
        **CIFAR_10,
        sizes=(10, 5_000, 1_000),
        reader="cifar:load_first",
    ),
    ImageDataset(
        "CIFAR-100",
        "60,000 photographs of 32 x 32 pixels, 100 classes; last 10,000 test",
        **CIFAR_100,
        sizes=(100, 50_000, 10_000),
        reader="cifar:load_cifar",
    ),
    ImageDataset(
        "FC100",
        "CIFAR-100 for few shots: all 600 photographs of 20 classes test, the other classes train",
        **CIFAR_100,
        sizes=(100, 48_000, 12_000),
        reader="cifar:load_few_shot",
        classes=tuple(FC100_TESTED.split()),
    ),
    ImageDataset(
        "STL-10",
        "113,000 photographs of 96 x 96 pixels: 5,000 train, 8,000 test, "
        "100,000 without a class; 10 classes",
        "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
        "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
        "stl10_binary.tar.gz",
        "Coates, Lee and Ng, An Analysis of Single-Layer Networks in "
        "Unsupervised Feature Learning, 2011",
        sizes=(10, 5_000, 8_000),
        unlabelled=100_000,
        reader="binaries:load_stl",
    ),
    ImageDataset(
        "Tiny-ImageNet",
        "110,000 photographs of 64 x 64 pixels, 200 classes; "
        "the published validation part is the test part",
        **TINY_IMAGENET,
        sizes=(200, 100_000, 10_000),
        reader="imagenet:load_tiny",
    ),
    ImageDataset(
        "Tiny-ImageNet-20",
        "10,000 training photographs of every tenth class of Tiny-ImageNet; 5,000 test",
        **TINY_IMAGENET,
        sizes=(20, 5_000, 5_000),
        content="71cc4f3206e820f6cda23de474192e9513021dd0a302fe015f6929cd7b0525c8",
        reader="imagenet:load_tenth",
    ),
    ImageDataset(
        "ImageNet-100",
        "100 classes of ImageNet (Tian et al. 2020), "
        "from its train and val folders in the data root",
        **IMAGENET,
        classes=IMAGENET_100,
    ),
    ImageDataset(
        "ImageNet",
        "1,331,167 photographs, 1,000 classes, from its train and val folders in the data root; "
        "50,000 test",
        **IMAGENET,
        sizes=(1000, 1_281_167, 50_000),
    ),
    ImageDataset(
        "DTD-10",
        "nine tiles of each of 1,200 photographs of DTD's first ten textures; 5,400 tiles test, "
        "of other photographs than train",
        "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",
        "e42855a52a4950a3b59612834602aa253914755c95b0cff9ead6d07395f8e205",
        citation="Cimpoi et al., Describing Textures in the Wild, 2014",
        sizes=(10, 5_400, 5_400),
        content="798a0c10399a67689bf1d9bdc933f42495df222a932affb0e81e41fa9e8e4ca4",
        classes=tuple(DTD_FIRST.split()),
        places=("dtd/images", "dtd/dtd/images"),
        reader="tiles:load_tiles",
    ),
    ImageDataset(
        "Devanagari",
        "9,660 handwritten characters of 28 x 28 pixels, 46 classes, cut from 92,000; 4,600 test",
        "https://archive.ics.uci.edu/dataset/389/devanagari+handwritten+character+dataset",
        "732ddfd5ae2860dc4a76be916422243ee40e41f09da618ac07582eeae12747a8",
        "devanagari.npz",
        "Acharya, Pant and Gyawali, Deep Learning Based Large Scale Handwritten Devanagari "
        "Character Recognition, 2015",
        "CC BY 4.0",
        sizes=(46, 5060, 4600),
        content="4899378cf265dda1fecaf76a529e569580633d78c49e5d54e5f8a30cbb1f64bd",
        shipped=HERE / "shipped/devanagari.npz",
        reader="own:load_declared_arrays",
    ),
    ImageDataset(
        "EMNIST-letters",
        "10,400 handwritten letters of 28 x 28 pixels, 26 classes, cut from 145,600; 5,200 test",
        "https://www.nist.gov/itl/products-and-services/emnist-dataset",
        "db9eb66a2d577e7fc78f93f0b54734eefea938fad96f8e1e5c1b5b8ef228bfa5",
        "emnist.npz",
        "Cohen et al., EMNIST: an extension of MNIST to handwritten letters, 2017",
        "NIST's open licence, as NIST's Special Database 19",
        sizes=(26, 5200, 5200),
        content="1d22a0a4469734728ff66d1b487cc6782069210e2ec241a8021b79fff291b1c2",
        shipped=HERE / "shipped/emnist.npz",
        reader="own:load_declared_arrays",
    ),
    *class_disjoint(),
    *transfer_sets(),
)

SOURCES = (
    Source("folder", "PATH", "train/CLASS/FILE, test/CLASS/FILE", "image", folder=True),
    Source("npz", "FILE", "arrays images, labels, test_images, test_labels", "image", (".npz",)),
    saved.source("pictures with a label, of the datasets library"),
)


def scoring(name: str) -> Scoring:
    """Return how a data set is scored; an undeclared one has the default."""
    return DATASETS[name].scoring if name in DATASETS else ACCURACY
