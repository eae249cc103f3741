"""Sets of metric learning: the classes of the test images are not those of the training images.

Classes stand in the order of their names or numbers; the first half trains, the second is tested.
"""

from collections.abc import Callable
from dataclasses import replace

from contrastbench.domains import download
from contrastbench.domains.image.data import decode, matlab
from contrastbench.domains.image.data.datasets import ImageDataset
from contrastbench.domains.image.data.decode import Kept
from contrastbench.domains.image.data.files import Part, Parts, part_of, photographs
from contrastbench.domains.image.data.images import LoadedImages, Request

FilesByClass = dict[str, list[str]]  # image files by class, in the order of classes


def load_disjoint(about: ImageDataset, asked: Request) -> LoadedImages:
    """A declared set of class-disjoint parts, from the data root.

    Raises:
        UserError: it is not there, or is something else.
    """
    path = download.local_file(about, asked.data_root) or download.fetch_file(about)
    kept = decode.opened(path, about.again)
    return photographs(about, LAYOUTS[about.layout](kept), path, kept.read, asked)


def by_folder(kept: Kept) -> Parts:
    """A folder for each class, as CUB has them in a folder `images`."""
    classes: FilesByClass = {}
    for path in decode.picture_paths(kept.names):
        if len(path.parts) > 1:
            classes.setdefault(path.parent.name, []).append(str(path))
    return class_halves(classes)


def by_alphabets(kept: Kept) -> Parts:
    """Omniglot's: a folder of alphabets for each part, and in them one for each character."""
    parts: dict[str, FilesByClass] = {"images_background": {}, "images_evaluation": {}}
    for path in decode.picture_paths(kept.names):
        if path.parts[0] in parts:
            label = "/".join(path.parts[1:-1])
            parts[path.parts[0]].setdefault(label, []).append(str(path))
    return two_parts(parts["images_background"], parts["images_evaluation"])


def by_annotations(kept: Kept) -> Parts:
    """Cars196's: `cars_annos.mat` of its authors names each image's file and class."""
    classes: FilesByClass = {}
    for number, file in sorted(matlab.annotations(kept.read("cars_annos.mat"))):
        classes.setdefault(f"{number:03}", []).append(file)
    return replace(class_halves(classes), listed=True)


def by_lists(kept: Kept) -> Parts:
    """SOP's: two lists with lines of image number, class, kind of product and file."""
    parts: dict[str, FilesByClass] = {"train": {}, "test": {}}
    for part, classes in parts.items():
        for line in kept.read(f"Ebay_{part}.txt").decode().splitlines()[1:]:
            _, label, _, name = line.split()
            classes.setdefault(label, []).append(name)
    return replace(two_parts(**parts), listed=True)


def class_halves(classes: FilesByClass) -> Parts:
    """The first half of the classes trains, the rest is tested."""
    items = list(classes.items())
    half = len(items) // 2
    return two_parts(dict(items[:half]), dict(items[half:]))


def two_parts(train: FilesByClass, test: FilesByClass) -> Parts:
    """The images of the parts, with classes numbered through both."""
    classes = (*train, *test)
    number = {label: k for k, label in enumerate(classes)}

    def part(files: FilesByClass) -> Part:
        return part_of([(name, number[k]) for k, names in files.items() for name in names])

    return Parts(part(train), part(test), classes)


LAYOUTS: dict[str, Callable[[Kept], Parts]] = {
    "folders": by_folder,
    "alphabets": by_alphabets,
    "annotations": by_annotations,
    "lists": by_lists,
}
