"""Declared sets of images, with their parts, files, sums and papers, and what users bring."""

from contrastbench.domains import hub
from contrastbench.domains.declaration import Dataset, Source, by_name


def images(
    name: str, summary: str, url: str, sha256: str, file: str, citation: str, content: str = ""
) -> Dataset:
    """A set of images; none of them states a licence."""
    places = PICTURES if content else ()
    return Dataset(name, summary, url, sha256, file, citation, content=content, places=places)


def class_disjoint(
    name: str,
    summary: str,
    url: str,
    places: tuple[str, ...],
    sizes: tuple[int, int, int],
    citation: str,
    content: str = "",
) -> Dataset:
    """A set of metric learning: classes, training and test images are counted."""
    return Dataset(
        name, summary, url, "", places[0], citation, sizes=sizes, content=content, places=places
    )


def transferred(
    name: str, summary: str, url: str, folder: str, sizes: tuple[int, int, int], citation: str
) -> Dataset:
    """A set that encoders are transferred to: classes, images to fit on and test images."""
    return Dataset(name, summary, url, "", folder, citation, sizes=sizes)


BIRDS = "Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, 2011"
CARS = "Krause et al., 3D Object Representations for Fine-Grained Categorization, 2013"
PICTURES = ("cifar10.zip", "cifar10/cifar10.zip", "cifar10")  # CIFAR-10's, below a data root
CIFAR_10 = (
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "cifar-10-binary.tar.gz",
    "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    "dd310cb17823bab56df92fdb9632ad8919772b1ca3fd78e6ed3008957b04fa07",
)
CIFAR_100 = (
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    "cifar-100-binary.tar.gz",
    "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
)
DATASETS = by_name(
    Dataset(
        "digits",
        "embedded: 1,797 handwritten digits of 8 x 8 pixels, 10 classes",
        citation="scikit-learn, UCI repository",
        licence="CC BY 4.0",
    ),
    images(
        "CIFAR-10", "60,000 photographs of 32 x 32 pixels, 10 classes; last 10,000 test", *CIFAR_10
    ),
    images(
        "CIFAR-10-5k",
        "a fixed part of CIFAR-10: 500 photographs of each class to train on, 100 to test",
        *CIFAR_10,
    ),
    images(
        "CIFAR-100",
        "60,000 photographs of 32 x 32 pixels, 100 classes; last 10,000 test",
        *CIFAR_100,
    ),
    images(
        "FC100",
        "CIFAR-100 for few shots: all 600 photographs of 20 classes test, the other classes train",
        *CIFAR_100,
    ),
    images(
        "STL-10",
        "113,000 photographs of 96 x 96 pixels: 5,000 train, 8,000 test, "
        "100,000 without a class; 10 classes",
        "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
        "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
        "stl10_binary.tar.gz",
        "Coates, Lee and Ng, An Analysis of Single-Layer Networks in "
        "Unsupervised Feature Learning, 2011",
    ),
    images(
        "Tiny-ImageNet",
        "110,000 photographs of 64 x 64 pixels, 200 classes; "
        "the published validation part is the test part",
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "",
        "tiny-imagenet-200.zip",
        "Le and Yang, Tiny ImageNet Visual Recognition Challenge, 2015",
    ),
    images(
        "ImageNet-100",
        "100 classes of ImageNet (Tian et al. 2020), "
        "from its train and val folders in the data root",
        "https://www.image-net.org",
        "",
        "imagenet",
        "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015",
    ),
    images(
        "ImageNet",
        "1,331,167 photographs, 1,000 classes, from its train and val folders in the data root; "
        "50,000 test",
        "https://www.image-net.org",
        "",
        "imagenet",
        "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015",
    ),
    class_disjoint(
        "CUB",
        "11,788 photographs of 200 kinds of birds; the first 100 train, the others are tested",
        "https://data.caltech.edu/records/65de6-vp158",
        ("CUB_200_2011", "CUB_200_2011/CUB_200_2011"),
        (200, 5864, 5924),
        BIRDS,
    ),
    class_disjoint(
        "CUB-50",
        "the first 50 kinds of CUB, 2,889 photographs of 112 pixels; 25 train, 25 are tested",
        "https://data.caltech.edu/records/65de6-vp158",
        ("cub50.zip", "cub50/cub50.zip", "CUB_200_2011_50"),
        (50, 1402, 1487),
        BIRDS,
        "6826bf74de63534a85395fb1deaeaf8cd775192e62f5ae64d087a010a5d988ad",
    ),
    class_disjoint(
        "CAR",
        "16,185 photographs of 196 models of cars; the first 98 train, the others are tested",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        ("cars196", "stanford_cars"),
        (196, 8054, 8131),
        CARS,
    ),
    class_disjoint(
        "Cars196",
        "the 8,144 photographs of CAR's own training part, cut to the car, of 72 pixels",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        ("cars196.zip", "cars196/cars196.zip", "cars196"),
        (196, 4052, 4092),
        CARS,
        "7b68fc6d9cc6931be665e089354cd67a166bde1a1234d2210c95493ec973f49f",
    ),
    class_disjoint(
        "SOP",
        "120,053 photographs of 22,634 products; 11,318 train, the others are tested",
        "https://cvgl.stanford.edu/projects/lifted_struct",
        ("Stanford_Online_Products",),
        (22634, 59551, 60502),
        "Oh Song et al., Deep Metric Learning via Lifted Structured Feature Embedding, 2016",
    ),
    class_disjoint(
        "Omniglot",
        "32,460 drawings of 1,623 characters; 964 of 30 alphabets train, those of 20 are tested",
        "https://github.com/brendenlake/omniglot",
        ("omniglot.zip", "omniglot/omniglot.zip", "omniglot", "omniglot-py"),
        (1623, 19280, 13180),
        "Lake et al., Human-level concept learning through probabilistic program induction, 2015",
        "168c89b02975566517c311b585680e0a5720318a7e5cad407aeff7e3f029c087",
    ),
    transferred(
        "Food-101",
        "101,000 photographs of 101 dishes; 25,250 test",
        "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
        "food-101",
        (101, 75750, 25250),
        "Bossard, Guillaumin and Van Gool, Food-101: Mining Discriminative Components with Random "
        "Forests, 2014",
    ),
    transferred(
        "SUN397",
        "39,700 photographs of 397 scenes: the first of ten partitions, whose Training_01.txt and "
        "Testing_01.txt lie in the same folder; 19,850 test",
        "https://vision.princeton.edu/projects/2010/SUN",
        "SUN397",
        (397, 19850, 19850),
        "Xiao et al., SUN Database: Large-scale Scene Recognition from Abbey to Zoo, 2010",
    ),
    transferred(
        "Stanford-Cars",
        "CAR by its authors' own parts: 16,185 photographs of 196 models of cars; 8,041 test",
        "https://ai.stanford.edu/~jkrause/cars/car_dataset.html",
        "stanford_cars",
        (196, 8144, 8041),
        CARS,
    ),
    transferred(
        "FGVC-Aircraft",
        "10,000 photographs of 100 variants of aircraft; 3,333 test",
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft",
        "fgvc-aircraft-2013b",
        (100, 6667, 3333),
        "Maji et al., Fine-Grained Visual Classification of Aircraft, 2013",
    ),
    transferred(
        "DTD",
        "5,640 photographs of 47 textures, the first of ten partitions; 1,880 test",
        "https://www.robots.ox.ac.uk/~vgg/data/dtd",
        "dtd",
        (47, 3760, 1880),
        "Cimpoi et al., Describing Textures in the Wild, 2014",
    ),
    transferred(
        "Oxford-Pets",
        "7,349 photographs of 37 breeds of cats and dogs; 3,669 test",
        "https://www.robots.ox.ac.uk/~vgg/data/pets",
        "oxford-iiit-pet",
        (37, 3680, 3669),
        "Parkhi et al., Cats and Dogs, 2012",
    ),
    transferred(
        "Caltech-101",
        "8,677 photographs of 101 kinds of objects; all but 30 of each test",
        "https://data.caltech.edu/records/mzrjq-6wc02",
        "caltech101",
        (101, 3030, 5647),
        "Fei-Fei, Fergus and Perona, Learning Generative Visual Models from Few Training Examples, "
        "2004",
    ),
    transferred(
        "Flowers-102",
        "8,189 photographs of 102 kinds of flowers; 6,149 test",
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102",
        "flowers-102",
        (102, 2040, 6149),
        "Nilsback and Zisserman, Automated Flower Classification over a Large Number of Classes, "
        "2008",
    ),
    transferred(
        "VOC2007",
        "9,963 photographs of 20 kinds of objects, several in many: for bench score; 4,952 test",
        "http://host.robots.ox.ac.uk/pascal/VOC/voc2007",
        "VOCdevkit",
        (20, 5011, 4952),
        "Everingham et al., The PASCAL Visual Object Classes Challenge 2007 Results, 2007",
    ),
)

SOURCES = (
    Source("folder", "PATH", "train/CLASS/FILE, test/CLASS/FILE", "image", folder=True),
    Source("npz", "FILE", "arrays images, labels, test_images, test_labels", "image", (".npz",)),
    hub.source("images of the hub, or of the datasets library"),
)
