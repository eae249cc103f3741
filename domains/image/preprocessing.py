"""Preprocessing of images: a recipe's views, and the normalisation of a network's input."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from contrastbench.domains.image.data.images import Croppable, Split
from contrastbench.domains.image.recipe import ImageRecipe
from contrastbench.domains.image.views import transforms
from contrastbench.domains.image.views.policies import Policy, grouped_policies, policy, policy_pair
from contrastbench.domains.model import ContrastiveModel, Raw
from contrastbench.domains.progress import tracked
from contrastbench.domains.reading import refuse
from contrastbench.domains.scoring.classifiers import Labelled

Model = ContrastiveModel | Raw
IMAGES_AT_ONCE = 256  # images embedded at once
LOCAL_SCALE = (0.05, 0.2)  # share of a picture that RényiCL's local crops show


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing that turns images into a network's input."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    size: int  # of scored images

    def views(self, images: Croppable, policies: Sequence[Policy], rng: Generator) -> list[Tensor]:
        policies = [replace(policy, fill=self.mean) for policy in policies]
        runs, views = grouped_policies(policies, images.labels.device), list[Tensor]()
        for (kind, count), crops in zip(runs, images.crops(runs, rng), strict=True):
            views.extend(self.view(crops, kind, rng).chunk(count))
        return views

    def viewed(
        self, images: Split, parts: Sequence[Tensor], kind: Policy, rng: Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Views and classes, part by part of the rows; the next images are read meanwhile."""
        part = images.in_turn(parts)
        for number, rows in enumerate(parts):
            (view,) = self.views(part(number), [kind], rng)
            yield view, images.labels[rows]

    def view(self, crops: Tensor, policy: Policy, rng: Generator) -> Tensor:
        x = transforms.normalise(transforms.recolour(crops, policy, rng), self.mean, self.std)
        return transforms.erase_some(x, policy, rng) if policy.erasing else x

    @torch.no_grad()
    def features(self, model: Model, images: Split, task: str = "features") -> Labelled:
        model.eval()
        rows = torch.arange(len(images), device=images.labels.device).split(IMAGES_AT_ONCE)
        batch, parts = images.ahead(rows), []
        for number in tracked(range(len(rows)), task):
            pixels = batch(number).pixels
            x = transforms.normalise(
                transforms.evaluation_view(pixels, self.size), self.mean, self.std
            )
            parts.append(model.features(x))
        x = torch.cat(parts)
        refuse("", (not bool(x.isfinite().all()), "features are not finite: the encoder diverged"))
        return Labelled(x, images.labels)


def policies(recipe: ImageRecipe) -> list[Policy]:
    """Return the policies of a batch's two views, of further positives and of local crops.

    With local crops nothing is erased, and RandAugment is that of the two whole views alone
    (RényiCL's appendix B.3); local crops have the second view's blur, but are not solarised, as in
    its released code.
    """
    kind = published_policy(recipe)
    if recipe.local_crops:
        kind = replace(kind, erasing=0.0)
    if recipe.pairing == "balanced":
        return [kind]
    first, second = policy_pair(kind) if recipe.asymmetric else (kind, kind)
    local = replace(
        second, size=recipe.local_size, scale=LOCAL_SCALE, randaugment=None, solarise=0.0
    )
    return [first, second, *[kind] * recipe.positives, *[local] * recipe.local_crops]


def published_policy(recipe: ImageRecipe) -> Policy:
    kind, jitter = policy(recipe.views, recipe.size), recipe.jitter_strength
    changes = {
        "blur": kind.blur if recipe.blur is None else recipe.blur,
        "strength": (0.8 * jitter, 0.8 * jitter, 0.8 * jitter, 0.2 * jitter),  # Chen et al., A
        "scale": (recipe.min_scale, 1.0),
        "again": recipe.noisy_crop,
        **{name: getattr(recipe, name) for name in ("flip", "warp", "rotation")},
    }
    if recipe.randaugment is not None:
        changes["randaugment"] = recipe.randaugment if recipe.randaugment[0] else None
    return replace(kind, **changes)
