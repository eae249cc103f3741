"""Trained encoders as folders, ours and those of ImageNet, ready to be scored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.exported import EXPORT_FIX, Listed, read_export, write_export
from contrastbench.domains.image.data import decode, images
from contrastbench.domains.image.data.datasets import SOURCES
from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD
from contrastbench.domains.image.data.own import images_of, load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.preprocessing import IMAGES_AT_ONCE, Model, Preprocessing
from contrastbench.domains.image.recipe import WEIGHT_PACKAGES, ImageRecipe
from contrastbench.domains.image.views.transforms import evaluation_view, normalise, stored_size
from contrastbench.domains.reading import contents, reading
from contrastbench.errors import UserError

IMAGENET_SIZE = 224  # pixels a side that those of ImageNet see
ENCODER, PROJECTOR = "encoder.", "projector."


@dataclass(frozen=True)
class Encoder:
    """A frozen network, and how images become its input."""

    network: Model
    preprocessing: Preprocessing
    device: torch.device

    def embed(self, data: Any) -> Tensor:
        """(n, features) float32 on the CPU: what a probe sees of each picture."""
        if isinstance(data, images.ImageSet):
            parts = [part for part in (data.train, data.unlabelled, data.test) if part is not None]
            return torch.cat([self.preprocessing.features(self.network, p).x for p in parts]).cpu()
        batches = picture_batches(data, self.preprocessing.size)
        return torch.cat([self.features(batch) for batch in batches])

    @torch.no_grad()
    def features(self, pixels: Tensor) -> Tensor:
        """(n, features) of pictures in [0, 1] that have the network's size."""
        seen = self.preprocessing
        z = self.network.eval().features(normalise(pixels.to(self.device), seen.mean, seen.std))
        if not bool(z.isfinite().all()):
            raise UserError("embeddings are not finite: the encoder diverged")
        return z.cpu()

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        parsed = own.parse_source(dataset, SOURCES)
        if parsed and parsed[0].kind == "folder":
            root = own.find_path(parsed[1], data_root, Path.is_dir)
            return Listed(root, image_files(root))
        return Listed(load_images(dataset, self.preprocessing.size, data_root, self.device)[0])


def export(
    model: ImageModel, recipe: ImageRecipe, preprocessing: Preprocessing, folder: Path
) -> None:
    weights = {
        key.removeprefix(ENCODER): x
        for key, x in model.state_dict().items()
        if is_scored_weight(key, recipe)
    }
    write_export(folder, "image", recipe, weights, mean=preprocessing.mean, std=preprocessing.std)


def is_scored_weight(key: str, recipe: ImageRecipe) -> bool:
    return key.startswith((ENCODER, PROJECTOR) if recipe.embeds else ENCODER)


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    if name.startswith(WEIGHT_PACKAGES):
        recipe = ImageRecipe.of("image", {"encoder": name, "width": 1.0, "size": IMAGENET_SIZE})
        preprocessing = Preprocessing(IMAGENET_MEAN, IMAGENET_STD, IMAGENET_SIZE)
        return Encoder(ImageModel(recipe, 0, data_root).to(device), preprocessing, device)
    weights, config = read_export(Path(name), "image")
    with reading(name, EXPORT_FIX):
        recipe = ImageRecipe(**config["recipe"])
        drawn = recipe.but(encoder=recipe.pretrained or recipe.encoder)
        model = ImageModel(drawn, 0)
        named = {k if k.startswith(PROJECTOR) else ENCODER + k: x for k, x in weights.items()}
        result = model.load_state_dict(named, strict=False)
        missing = [key for key in result.missing_keys if is_scored_weight(key, recipe)]
        if missing or result.unexpected_keys:
            raise ValueError(f"weights do not fit: {[*missing, *result.unexpected_keys][0]}")
        size = recipe.test_size or recipe.size
        preprocessing = Preprocessing(tuple(config["mean"]), tuple(config["std"]), size)
    return Encoder(model.to(device), preprocessing, device)


def picture_batches(data: Any, size: int) -> Iterator[Tensor]:
    """Yield batches of (n, 3, size, size) pictures in [0, 1].

    They are an array, a list of PIL images or of image files, or a folder.
    """
    if isinstance(data, str | Path):
        data = [Path(data) / name for name in image_files(Path(data))]
    first = data[0] if isinstance(data, Sequence) and data else None
    if isinstance(first, str | Path):
        files = [str(path) for path in data]
        made = decode.in_threads(
            lambda name: of_image(decode.open_rgb(name, contents(Path(name))), size),
            files,
            "embedding images",
        )
    else:
        pictures = data if isinstance(first, Image.Image) else images_of_array(data)
        made = (of_image(decode.to_rgb(picture), size) for picture in pictures)
    while batch := [*islice(made, IMAGES_AT_ONCE)]:
        yield torch.stack(batch)


def image_files(root: Path) -> list[str]:
    if not root.is_dir():
        raise UserError(f"no folder {root}: give that of image files, or a list of the files")
    return images_of(root, ".")


def of_image(image: Image.Image, size: int) -> Tensor:
    """(3, size, size) in [0, 1] of an image of three colours, reduced as those of folders are."""
    if max(image.size) > max(images.MAX_KEPT_SIDE, size):
        image = decode.centre_crop(image, stored_size(size))
    return evaluation_view(decode.to_tensor(image)[None], size)[0]


def images_of_array(data: Any) -> list[Image.Image]:
    array = np.asarray(data)
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] != 3:
        kind = f"an array of {array.dtype} and shape {array.shape} holds no pictures"
        raise UserError(f"{kind}: give uint8 of shape (N, height, width, 3)")
    return [Image.fromarray(picture) for picture in array]
