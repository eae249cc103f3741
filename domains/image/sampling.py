"""Choose the images of each batch, balanced over classes where the recipe says so."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from contrastbench.domains.image.data.images import Croppable, ImageFiles, Images, Split
from contrastbench.domains.image.recipe import ImageRecipe
from contrastbench.domains.image.views.policies import Policy
from contrastbench.domains.random import generator
from contrastbench.errors import UserError


class ImagePool:
    """The images that an encoder trains on, as if they were one split."""

    def __init__(self, splits: Sequence[Split]) -> None:
        self.splits = splits
        self.ends = list(accumulate(len(part) for part in splits))

    def __len__(self) -> int:
        return self.ends[-1]

    def arranged(self, rows: Tensor) -> tuple[Tensor, list[list[int]]]:
        """(steps, batch) numbers put in order, split by split, and how many each has of each split.

        The host waits for the device once for all steps.
        """
        if len(self.splits) == 1:
            return rows, [[rows.shape[1]]] * len(rows)
        split = torch.bucketize(rows, torch.tensor(self.ends, device=rows.device), right=True)
        sizes = one_hot(split, len(self.splits)).sum(dim=1)
        return rows.gather(1, split.argsort(dim=1, stable=True)), sizes.tolist()

    def ahead(
        self,
        parts: Sequence[Tensor],
        policies: Sequence[Policy],
        rngs: Sequence[torch.Generator],
    ) -> Callable[[int], Croppable] | None:
        """Images of each of the arranged parts, by its number, decoded ahead; None: no files."""
        first = self.splits[0]
        if len(self.splits) > 1 or not isinstance(first, ImageFiles):
            return None
        return first.crops_ahead(parts, policies, rngs)

    def batch(self, rows: Tensor, sizes: list[int]) -> Split:
        """The images of those numbers, so many of each split."""
        parts = [part.select(here) for part, here in self.by_split(rows, sizes)]
        if len(parts) == 1:
            return parts[0]
        everything = [part.batch(torch.arange(len(part), device=rows.device)) for part in parts]
        return Images(torch.cat(everything), torch.cat([part.labels for part in parts]))

    def by_split(self, rows: Tensor, sizes: list[int]) -> Iterator[tuple[Split, Tensor]]:
        """The splits that those numbers are in, and the numbers within each."""
        for part, end, here in zip(self.splits, self.ends, rows.split(sizes), strict=True):
            if len(here):
                yield part, here - (end - len(part))


def check_balance(labels: Tensor, recipe: ImageRecipe) -> None:
    """Raise unless there are as many classes as a balanced batch has, and two at least."""
    per_class, there = recipe.samples_per_class, len(labels.unique())
    if not 2 <= recipe.batch_size // per_class <= there:
        raise UserError(
            f"{recipe.batch_size} images, {per_class} of each class, are of "
            f"{recipe.batch_size // per_class} classes, and 2 to {there} are there: "
            f"--recipe batch_size={there * per_class}"
        )


def check_batch_classes(labels: Tensor, images: int) -> None:
    """Raise unless each supervised batch has two classes: other classes are the negatives.

    Args:
        labels: (steps, batch) of an epoch, so that no step waits for the answer.
        images: that there are.
    """
    if bool((labels == labels[:, :1]).all(dim=1).any()):
        batch, larger = labels.shape[1], min(2 * labels.shape[1], images)
        raise UserError(
            f"all {batch} images of a batch have one class: give --recipe batch_size={larger}"
        )


def check_retrievable(part: str, labels: Tensor) -> None:
    """Raise unless some class of a held-out part has two images, so that one can find the other."""
    if int(labels.bincount().max()) < 2:
        raise UserError(
            f"{part}: no class has two of its {len(labels)} images, so there is nothing to "
            "retrieve: give a larger --recipe limit, or another --recipe validation"
        )


def held_out_split(
    images: Split,
    share: float,
    seed: int,
    limit: int | None = None,
    fix: str = "give another --recipe validation",
) -> tuple[Split, Split | None]:
    """The rest, and a stratified share drawn by the seed; `limit` keeps so many of all.

    Raises:
        UserError: the part is empty.
    """
    rng = generator(torch.device("cpu"), seed)
    rows = torch.randperm(len(images), generator=rng)[:limit]
    labels = images.labels.cpu()[rows]
    if share == 0:
        return images.select(rows.to(images.labels.device)), None
    members = [rows[labels == label] for label in labels.unique()]
    halves = [member.tensor_split([round(share * len(member))]) for member in members]
    out, kept = (torch.cat(part) for part in zip(*halves, strict=True))
    if len(out) == 0:
        raise UserError(f"{share} of {len(rows)} images leaves classes empty: {fix}")
    return images.select(kept.to(images.labels.device)), images.select(out.to(images.labels.device))
