"""Declared sets of images, with their parts, files, sums and papers, and what users bring."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from contrastbench.domains import hub
from contrastbench.domains.declaration import Dataset, Source, by_name

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


def class_disjoint(
    name: str,
    summary: str,
    url: str,
    places: tuple[str, ...],
    layout: str,
    sizes: tuple[int, int, int],
    citation: str,
    content: str = "",
) -> ImageDataset:
    """A set of metric learning: classes, training and test images are counted."""
    return ImageDataset(
        *(name, summary, url, "", places[0], citation),
        sizes=sizes,
        content=content,
        places=places,
        reader="disjoint:load_disjoint",
        layout=layout,
    )


def transfer_set(
    name: str,
    summary: str,
    url: str,
    folder: str,
    layout: str,
    sizes: tuple[int, int, int],
    citation: str,
    validation: str = "",
    scoring: Scoring = ACCURACY,
) -> ImageDataset:
    """A set that encoders are transferred to: classes, images to fit on and test images.

    The layout is the class of torchvision that knows its files.
    """
    return ImageDataset(
        *(name, summary, url, "", folder, citation),
        sizes=sizes,
        reader="transfer_sets:load_transfer",
        layout=layout,
        validation_part=validation,
        scoring=scoring,
    )


PER_CLASS_ACCURACY = "per_class_accuracy"
BIRDS = "Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, 2011"
CARS = "Krause et al., 3D Object Representations for Fine-Grained Categorization, 2013"
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
# aquatic mammals, insects, medium-sized mammals, people
FC100_TESTED = """
beaver dolphin otter seal whale bee beetle butterfly caterpillar cockroach fox porcupine possum
raccoon skunk baby boy girl man woman
"""
# imagenet100.txt of Tian et al., Contrastive Multiview Coding, 2020
_IMAGENET_100 = """
n02869837 n01749939 n02488291 n02107142 n13037406 n02091831 n04517823 n04589890 n03062245 n01773797
n01735189 n07831146 n07753275 n03085013 n04485082 n02105505 n01983481 n02788148 n03530642 n04435653
n02086910 n02859443 n13040303 n03594734 n02085620 n02099849 n01558993 n04493381 n02109047 n04111531
n02877765 n04429376 n02009229 n01978455 n02106550 n01820546 n01692333 n07714571 n02974003 n02114855
n03785016 n03764736 n03775546 n02087046 n07836838 n04099969 n04592741 n03891251 n02701002 n03379051
n02259212 n07715103 n03947888 n04026417 n02326432 n03637318 n01980166 n02113799 n02086240 n03903868
n02483362 n04127249 n02089973 n03017168 n02093428 n02804414 n02396427 n04418357 n02172182 n01729322
n02113978 n03787032 n02089867 n02119022 n03777754 n04238763 n02231487 n03032252 n02138441 n02104029
n03837869 n03494278 n04136333 n03794056 n03492542 n02018207 n04067472 n03930630 n03584829 n02123045
n04229816 n02100583 n03642806 n04336792 n03259280 n02116738 n02108089 n03424325 n01855672 n02090622
"""
IMAGENET_100 = tuple(_IMAGENET_100.split())
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
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        file="tiny-imagenet-200.zip",
        citation="Le and Yang, Tiny ImageNet Visual Recognition Challenge, 2015",
        sizes=(200, 100_000, 10_000),
        reader="imagenet:load_tiny",
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
    class_disjoint(
        "CUB",
        "11,788 photographs of 200 kinds of birds; the first 100 train, the others are tested",
        "https://data.caltech.edu/records/65de6-vp158",
        ("CUB_200_2011", "CUB_200_2011/CUB_200_2011"),
        "folders",
        (200, 5864, 5924),
        BIRDS,
    ),
    class_disjoint(
        "CUB-50",
        "the first 50 kinds of CUB, 2,889 photographs of 112 pixels; 25 train, 25 are tested",
        "https://data.caltech.edu/records/65de6-vp158",
        ("cub50.zip", "cub50/cub50.zip", "CUB_200_2011_50"),
        "folders",
        (50, 1402, 1487),
        BIRDS,
        "6826bf74de63534a85395fb1deaeaf8cd775192e62f5ae64d087a010a5d988ad",
    ),
    class_disjoint(
        "CAR",
        "16,185 photographs of 196 models of cars; the first 98 train, the others are tested",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        ("cars196", "stanford_cars"),
        "annotations",
        (196, 8054, 8131),
        CARS,
    ),
    class_disjoint(
        "Cars196",
        "the 8,144 photographs of CAR's own training part, cut to the car, of 72 pixels",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        ("cars196.zip", "cars196/cars196.zip", "cars196"),
        "folders",
        (196, 4052, 4092),
        CARS,
        "7b68fc6d9cc6931be665e089354cd67a166bde1a1234d2210c95493ec973f49f",
    ),
    class_disjoint(
        "SOP",
        "120,053 photographs of 22,634 products; 11,318 train, the others are tested",
        "https://cvgl.stanford.edu/projects/lifted_struct",
        ("Stanford_Online_Products",),
        "lists",
        (22634, 59551, 60502),
        "Oh Song et al., Deep Metric Learning via Lifted Structured Feature Embedding, 2016",
    ),
    class_disjoint(
        "Omniglot",
        "32,460 drawings of 1,623 characters; 964 of 30 alphabets train, those of 20 are tested",
        "https://github.com/brendenlake/omniglot",
        ("omniglot.zip", "omniglot/omniglot.zip", "omniglot", "omniglot-py"),
        "alphabets",
        (1623, 19280, 13180),
        "Lake et al., Human-level concept learning through probabilistic program induction, 2015",
        "168c89b02975566517c311b585680e0a5720318a7e5cad407aeff7e3f029c087",
    ),
    transfer_set(
        "Food-101",
        "101,000 photographs of 101 dishes; 25,250 test",
        "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
        "food-101",
        "Food101",
        (101, 75750, 25250),
        "Bossard, Guillaumin and Van Gool, Food-101: Mining Discriminative Components with Random "
        "Forests, 2014",
    ),
    transfer_set(
        "SUN397",
        "39,700 photographs of 397 scenes: the first of ten partitions, whose Training_01.txt and "
        "Testing_01.txt lie in the same folder; 19,850 test",
        "https://vision.princeton.edu/projects/2010/SUN",
        "SUN397",
        "SUN397",
        (397, 19850, 19850),
        "Xiao et al., SUN Database: Large-scale Scene Recognition from Abbey to Zoo, 2010",
        scoring=Scoring(share=0.2),
    ),
    transfer_set(
        "Stanford-Cars",
        "CAR by its authors' own parts: 16,185 photographs of 196 models of cars; 8,041 test",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        "stanford_cars",
        "StanfordCars",
        (196, 8144, 8041),
        CARS,
        scoring=Scoring(share=0.2),
    ),
    transfer_set(
        "FGVC-Aircraft",
        "10,000 photographs of 100 variants of aircraft; 3,333 test",
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft",
        "fgvc-aircraft-2013b",
        "FGVCAircraft",
        (100, 6667, 3333),
        "Maji et al., Fine-Grained Visual Classification of Aircraft, 2013",
        validation="val",
        scoring=Scoring(PER_CLASS_ACCURACY),
    ),
    transfer_set(
        "DTD",
        "5,640 photographs of 47 textures, the first of ten partitions; 1,880 test",
        "https://www.robots.ox.ac.uk/~vgg/data/dtd",
        "dtd",
        "DTD",
        (47, 3760, 1880),
        "Cimpoi et al., Describing Textures in the Wild, 2014",
        validation="val",
    ),
    transfer_set(
        "Oxford-Pets",
        "7,349 photographs of 37 breeds of cats and dogs; 3,669 test",
        "https://www.robots.ox.ac.uk/~vgg/data/pets",
        "oxford-iiit-pet",
        "OxfordIIITPet",
        (37, 3680, 3669),
        "Parkhi et al., Cats and Dogs, 2012",
        scoring=Scoring(PER_CLASS_ACCURACY, share=0.2),
    ),
    transfer_set(
        "Caltech-101",
        "8,677 photographs of 101 kinds of objects; all but 30 of each test",
        "https://data.caltech.edu/records/mzrjq-6wc02",
        "caltech101",
        "Caltech101",
        (101, 3030, 5647),
        "Fei-Fei, Fergus and Perona, Learning Generative Visual Models from Few Training Examples, "
        "2004",
        scoring=Scoring(PER_CLASS_ACCURACY, share=5 / CALTECH_FITTED),
    ),
    transfer_set(
        "Flowers-102",
        "8,189 photographs of 102 kinds of flowers; 6,149 test",
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102",
        "flowers-102",
        "Flowers102",
        (102, 2040, 6149),
        "Nilsback and Zisserman, Automated Flower Classification over a Large Number of Classes, "
        "2008",
        validation="val",
        scoring=Scoring(PER_CLASS_ACCURACY),
    ),
    transfer_set(
        "VOC2007",
        "9,963 photographs of 20 kinds of objects, several in many: for bench score; 4,952 test",
        "http://host.robots.ox.ac.uk/pascal/VOC/voc2007",
        "VOCdevkit",
        "VOCDetection",
        (20, 5011, 4952),
        "Everingham et al., The PASCAL Visual Object Classes Challenge 2007 Results, 2007",
        scoring=Scoring("mean_average_precision"),
    ),
)

SOURCES = (
    Source("folder", "PATH", "train/CLASS/FILE, test/CLASS/FILE", "image", folder=True),
    Source("npz", "FILE", "arrays images, labels, test_images, test_labels", "image", (".npz",)),
    hub.source("images of the hub, or of the datasets library"),
)


def scoring(name: str) -> Scoring:
    """Return how a data set is scored; an undeclared one has the default."""
    return DATASETS[name].scoring if name in DATASETS else ACCURACY
