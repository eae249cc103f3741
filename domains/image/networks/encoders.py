"""Trained encoders as folders, ours and those of ImageNet, ready to be scored."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck

from contrastbench.domains import own
from contrastbench.domains.exported import EXPORT_FIX, Samples, read_export, write_export
from contrastbench.domains.image.data.datasets import SOURCES
from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD, ImageSet
from contrastbench.domains.image.data.load import load_images
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.networks.resnet import ResNet
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

    model: Model
    preprocessing: Preprocessing
    device: torch.device

    def embed(self, data: Any) -> Tensor:
        """(n, features) float32 on the CPU: what a probe sees of each picture.

        Args:
            data: an array of pictures, a list of PIL images or of files, or a folder.

        Raises:
            UserError: there is no picture, or one cannot be read.
        """
        if isinstance(data, ImageSet):
            parts = [part for part in (data.train, data.unlabelled, data.test) if part is not None]
            return torch.cat([self.preprocessing.features(self.model, p).x for p in parts]).cpu()
        batches = picture_batches(data, self.preprocessing.size)
        return torch.cat([self.features(batch) for batch in batches])

    @torch.no_grad()
    def features(self, pixels: Tensor) -> Tensor:
        """(n, features) of pictures in [0, 1] that have the network's size."""
        seen = self.preprocessing
        z = self.model.eval().features(normalise(pixels.to(self.device), seen.mean, seen.std))
        if not bool(z.isfinite().all()):
            raise UserError("embeddings are not finite: the encoder diverged")
        return z.cpu()

    def read(self, dataset: str, data_root: Path | None) -> Samples:
        """Return the pictures of a folder by name, or those of another set, training ones first."""
        parsed = own.parse_source(dataset, SOURCES)
        if parsed and parsed[0].kind == "folder":
            root = own.find_path(parsed[1], data_root, Path.is_dir)
            return Samples(root, image_files(root))
        return Samples(load_images(dataset, self.preprocessing.size, data_root, self.device)[0])


def export(
    model: ImageModel, recipe: ImageRecipe, preprocessing: Preprocessing, folder: Path
) -> None:
    """Write what is scored: its weights, and the recipe and the normalisation as JSON.

    A ResNet's weights have torchvision's names.
    """
    weights = {
        k.removeprefix(ENCODER): x
        for k, x in model.state_dict().items()
        if is_scored_weight(k, recipe)
    }
    names = torchvision_names(model.encoder)
    theirs = {renamed(key, names): x for key, x in weights.items()}
    write_export(folder, "image", recipe, theirs, mean=preprocessing.mean, std=preprocessing.std)


def is_scored_weight(key: str, recipe: ImageRecipe) -> bool:
    """Return whether a weight is of what is scored."""
    return key.startswith((ENCODER, PROJECTOR) if recipe.embeds else ENCODER)


def torchvision_names(encoder: nn.Module) -> dict[str, str]:
    """Return torchvision's names of a ResNet's layers by ours; none of another network."""
    if not isinstance(encoder, ResNet):
        return {}
    names, stage, number = {"0": "conv1", "1": "bn1"}, 1, 0
    for key, layer in encoder.named_children():
        if isinstance(layer, BasicBlock | Bottleneck):
            if number and layer.stride > 1:
                stage, number = stage + 1, 0
            names[key], number = f"layer{stage}.{number}", number + 1
    return names


def renamed(key: str, names: Mapping[str, str]) -> str:
    """Return the name of a weight with another name of its layer, if it has one.

    >>> renamed("3.conv1.weight", {"3": "layer1.0"}), renamed("projector.0.bias", {})
    ('layer1.0.conv1.weight', 'projector.0.bias')
    """
    return next(
        (name + key.removeprefix(own) for own, name in names.items() if key.startswith(f"{own}.")),
        key,
    )


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    """A folder that `export` wrote, `torchvision:NAME` or BN-Inception.

    Raises:
        UserError: there is none, or it is damaged.
    """
    if name.startswith(WEIGHT_PACKAGES):
        recipe = ImageRecipe.of("image", {"encoder": name, "width": 1.0, "size": IMAGENET_SIZE})
        preprocessing = Preprocessing(IMAGENET_MEAN, IMAGENET_STD, IMAGENET_SIZE)
        return Encoder(ImageModel(recipe, 0, data_root).to(device), preprocessing, device)
    return exported(Path(name), device)


def exported(folder: Path, device: torch.device) -> Encoder:
    """Load an encoder that `export` wrote."""
    weights, config = read_export(folder, "image")
    with reading(folder, EXPORT_FIX):
        recipe = ImageRecipe(**config["recipe"])
        drawn = recipe.but(encoder=recipe.pretrained or recipe.encoder)
        model = ImageModel(drawn, 0)
        result = model.load_state_dict(own_names(weights, model.encoder), strict=False)
        missing = [key for key in result.missing_keys if is_scored_weight(key, recipe)]
        if missing or result.unexpected_keys:
            raise ValueError(f"weights do not fit: {[*missing, *result.unexpected_keys][0]}")
        size = recipe.test_size or recipe.size
        preprocessing = Preprocessing(tuple(config["mean"]), tuple(config["std"]), size)
    return Encoder(model.to(device), preprocessing, device)


def own_names(weights: Mapping[str, Tensor], encoder: nn.Module) -> dict[str, Tensor]:
    """Return weights by the names of our model."""
    ours = {theirs: own for own, theirs in torchvision_names(encoder).items()}
    return {
        key if key.startswith(PROJECTOR) else ENCODER + renamed(key, ours): x
        for key, x in weights.items()
    }
