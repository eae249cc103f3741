"""Choose the images of each batch, balanced over classes where the recipe says so."""

import torch
from torch import Tensor

from contrastbench.domains.image.data.images import Images, Split
from contrastbench.domains.image.recipe import ImageRecipe
from contrastbench.domains.random import generator
from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import chosen, draw_share


def with_unlabelled(train: Split, unlabelled: Split | None) -> Split:
    """Return the images that an encoder trains on, those without a class last."""
    if unlabelled is None:
        return train
    assert isinstance(train, Images), "only binaries have such images, which are read whole"
    assert isinstance(unlabelled, Images), "the same"
    pixels = torch.cat([train.pixels, unlabelled.pixels])
    return Images(pixels, torch.cat([train.labels, unlabelled.labels]))


def check_balance(labels: Tensor, recipe: ImageRecipe) -> None:
    per_class, there = recipe.samples_per_class, len(labels.unique())
    kinds = recipe.batch_size // per_class
    fault = f" images, {per_class} of each class, are of {kinds} classes, and 2 to {there}"
    fix = f" are there: --recipe batch_size={there * per_class}"
    refuse(recipe.batch_size, (not 2 <= kinds <= there, fault + fix))


def check_batch_classes(labels: Tensor, images: int) -> None:
    """Raise unless each supervised batch has two classes: other classes are the negatives.

    The (steps, batch) labels are those of an epoch, so that no step waits for the answer.
    """
    batch, larger = labels.shape[1], min(2 * labels.shape[1], images)
    fault = f"all {batch} images of a batch have one class: give --recipe batch_size={larger}"
    refuse("", (bool((labels == labels[:, :1]).all(dim=1).any()), fault))


def check_retrievable(part: str, labels: Tensor) -> None:
    fault = f": no class has two of its {len(labels)} images, so there is nothing to retrieve"
    fix = ": give a larger --recipe limit, or another --recipe validation"
    refuse(part, (int(labels.bincount().max()) < 2, fault + fix))


def held_out_split(
    images: Split,
    share: float,
    seed: int,
    limit: int | None = None,
    fix: str = "give another --recipe validation",
    last: int = 0,
) -> tuple[Split, Split | None]:
    """The rest, and a stratified share drawn by the seed; `limit` keeps so many of all.

    In place of a share it is so many of the last images, which the set's authors choose by.
    """
    rng = generator(torch.device("cpu"), seed)
    rows = torch.randperm(len(images), generator=rng)[:limit]
    labels = images.labels.cpu()
    if share == 0:
        return images.select(rows.to(images.labels.device)), None
    members = [rows[labels[rows] == label] for label in labels[rows].unique()]
    halves = [member.tensor_split([round(share * len(member))]) for member in members]
    out, kept = (torch.cat(part) for part in zip(*halves, strict=True))
    if named := chosen(images.groups, rows.tolist()):
        kept, out = (rows[part] for part in draw_share(labels[rows].numpy(), share, seed, named))
    if last:
        out, kept = (rows[part] for part in (rows >= len(images) - last, rows < len(images) - last))
    refuse(share, (len(out) == 0, f" of {len(rows)} images leaves classes empty: {fix}"))
    return images.select(kept.to(images.labels.device)), images.select(out.to(images.labels.device))
