"""Trained encoders as folders, ours and those of ImageNet, ready to be scored."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.exported import EXPORT_FIX, Listed, read_export, write_export
from contrastbench.domains.image.data.datasets import SOURCES
from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD, ImageSet
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.pictures import image_files, picture_batches
from contrastbench.domains.image.preprocessing import Model, Preprocessing
from contrastbench.domains.image.recipe import WEIGHT_PACKAGES, ImageRecipe
from contrastbench.domains.image.views.transforms import normalise
from contrastbench.domains.reading import reading
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
        if isinstance(data, ImageSet):
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
