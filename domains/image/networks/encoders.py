"""Trained encoders as folders, ours and those of ImageNet, ready to be scored."""

from dataclasses import dataclass
from pathlib import Path

import torch

from contrastbench.domains.exported import AGAIN, CONFIG, read, write
from contrastbench.domains.image.data.images import IMAGENET_MEAN, IMAGENET_STD
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.preprocessing import Model, Preprocessing
from contrastbench.domains.image.recipe import KEPT, ImageRecipe
from contrastbench.domains.reading import reading
from contrastbench.losses.errors import UserError

SIZE = 224  # pixels a side that those of ImageNet see


@dataclass(frozen=True)
class Encoder:
    """A frozen network, and how images become its input."""

    model: Model
    preprocessing: Preprocessing


def export(
    model: ImageModel, recipe: ImageRecipe, preprocessing: Preprocessing, folder: Path
) -> None:
    """Write what is scored: its weights, and the recipe and the normalisation as JSON."""
    parts = ("encoder.", "projector.") if recipe.embeds else ("encoder.",)
    weights = {k: v for k, v in model.state_dict().items() if k.startswith(parts)}
    write(folder, "image", recipe, weights, mean=preprocessing.mean, std=preprocessing.std)


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    """A folder that `export` wrote, `torchvision:NAME` or `pretrainedmodels:bn_inception`.

    Raises:
        UserError: there is none, or it is damaged.
    """
    if name.startswith(KEPT):
        recipe = ImageRecipe.of("image", {"encoder": name, "width": 1.0, "size": SIZE})
        seen = Preprocessing(IMAGENET_MEAN, IMAGENET_STD, SIZE)
        return Encoder(ImageModel(recipe, 0, data_root).to(device), seen)
    if not (Path(name) / CONFIG).is_file():
        raise UserError(
            f"{name} holds no exported encoder: give a folder that bench run --export wrote, or "
            "torchvision:resnet50"
        )
    return exported(Path(name), device)


def exported(folder: Path, device: torch.device) -> Encoder:
    """Load an encoder that `export` wrote."""
    weights, config = read(folder, "image")
    with reading(folder, AGAIN):
        recipe = ImageRecipe(**config["recipe"])
        drawn = recipe.model_copy(update={"encoder": recipe.pretrained or recipe.encoder})
        model = ImageModel(drawn, 0)
        result = model.load_state_dict(weights, strict=False)
        scored = ("encoder.", "projector.") if recipe.embeds else ("encoder.",)
        missing = [key for key in result.missing_keys if key.startswith(scored)]
        if missing or result.unexpected_keys:
            raise ValueError(f"weights do not fit: {[*missing, *result.unexpected_keys][0]}")
        size = recipe.test_size or recipe.size
        seen = Preprocessing(tuple(config["mean"]), tuple(config["std"]), size)
    return Encoder(model.to(device), seen)
