"""Tiny-ImageNet, ImageNet-100 and ImageNet, read from their files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.archives import again, archive
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.decode import ReadBytes
from contrastbench.domains.image.data.files import Part, Parts, check_sizes, from_files
from contrastbench.domains.image.data.folders import images_of, part
from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD, ImageSet
from contrastbench.domains.own import files_below
from contrastbench.domains.reading import reading
from contrastbench.losses.errors import UserError

# classes, training and test images
TINY, ALL = (200, 100_000, 10_000), (1000, 1_281_167, 50_000)
# imagenet100.txt of Tian et al., Contrastive Multiview Coding, 2020
_LIST = """
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
IMAGENET_100 = tuple(_LIST.split())


def load_tiny(
    name: str, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """Tiny-ImageNet from its zip or its folder; the test part is the published validation part."""
    folder = data_root / "tiny-imagenet-200" if data_root else None
    if folder and folder.is_dir():
        path, read, names = folder, decode.folder_reader(folder), files_below(folder)
    else:
        path = archive(name, data_root)
        member_of = decode.zip_reader(path, again(name))
        names = [n.removeprefix("tiny-imagenet-200/") for n in decode.zip_names(path, again(name))]
        read = lambda member: member_of(f"tiny-imagenet-200/{member}")  # noqa: E731
    parts = tiny_parts(read, names)
    check_sizes(path, name, parts, TINY, again(name))
    return from_files(parts, read, {}, size, device, whole)


def tiny_parts(read: ReadBytes, names: Iterable[str]) -> Parts:
    """Tiny-ImageNet's files: training images in class folders, validation images in a list."""
    images = sorted(n for n in names if n.startswith("train/") and n.endswith(".JPEG"))
    with reading("Tiny-ImageNet", again("Tiny-ImageNet")):
        classes = tuple(sorted(read("wnids.txt").decode().split()))
        lines = read("val/val_annotations.txt").decode().splitlines()
        files, labels = zip(*(line.split("\t")[:2] for line in lines), strict=True)
        train = Part(tuple(images), numbers(classes, [n.split("/")[1] for n in images]))
        test = Part(tuple(f"val/images/{file}" for file in files), numbers(classes, labels))
    return Parts(train, test, classes, listed=True)


def numbers(classes: Sequence[str], labels: Iterable[str]) -> tuple[int, ...]:
    """Return where the labels stand among the classes."""
    number = {label: k for k, label in enumerate(classes)}
    try:
        return tuple(number[label] for label in labels)
    except KeyError as error:
        raise ValueError(f"unknown class {error}") from None


def load_imagenet(
    name: str, size: int, data_root: Path | None, device: torch.device, whole: bool
) -> tuple[ImageSet, str]:
    """ImageNet, or the 100 of its classes that have a name, from its train and val folders."""
    root = imagenet_folder(name, data_root)
    classes = imagenet_classes(name, root)
    files = []
    for split in ("train", "val"):
        missing = [label for label in classes if not (root / split / label).is_dir()]
        if missing:
            raise UserError(
                f"{root / split} has no folder {missing[0]}, one of {name}'s {len(classes)} classes"
            )
        files.append({label: images_of(root, f"{split}/{label}") for label in classes})
    train, test = (part(images, classes) for images in files)
    parts = Parts(train, test, classes)
    if name == "ImageNet":
        check_sizes(root, name, parts, ALL, "get the rest")
    images, digest = from_files(parts, decode.folder_reader(root), {}, size, device, whole)
    return replace(images, mean=IMAGENET_MEAN, std=IMAGENET_STD), digest


def imagenet_classes(name: str, root: Path) -> tuple[str, ...]:
    """The classes of ImageNet-100, which more may stand beside; of ImageNet all there are."""
    if name != "ImageNet":
        return tuple(sorted(IMAGENET_100))
    return tuple(sorted(path.name for path in (root / "train").iterdir() if path.is_dir()))


def imagenet_folder(name: str, data_root: Path | None) -> Path:
    """The folder in the data root that holds ImageNet's train and val folders."""
    parts = ("imagenet-100", "imagenet100") if name != "ImageNet" else ()
    for folder in (*parts, "imagenet", "ImageNet", "ILSVRC2012", "."):
        if data_root and (data_root / folder / "train" / IMAGENET_100[0]).is_dir():
            return data_root / folder
    where = (
        f"{data_root} has no imagenet/train/{IMAGENET_100[0]}"
        if data_root
        else "no data root is given"
    )
    url = DATASETS[name].url
    fix = f"get ImageNet from {url} and name the folder of its train and val: --data-root"
    raise UserError(f"{where}: {fix} (or CONTRASTBENCH_DATA)")
