"""Tables of numbers: RényiCL's protocol on any table, any registered loss in place of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from contrastbench.domains.base import Evaluation, generator
from contrastbench.domains.classifiers import CLASSIFIERS, Classifier, Labelled, accuracy
from contrastbench.domains.model import Raw
from contrastbench.domains.recipes import Recipe, TabularRecipe
from contrastbench.domains.tabular.data import load
from contrastbench.domains.tabular.encoder import TabularModel
from contrastbench.domains.tabular.preprocessing import prepare, split
from contrastbench.domains.tabular.views import two_views
from contrastbench.losses.contrast import Contrast, both_views, query_key
from contrastbench.losses.errors import UserError

LINEAR = ("linear", "pseudo_inverse", "logistic")
CHUNK = 4096  # rows embedded at once


class Batch(NamedTuple):
    """Two views of the rows of a step, and their classes."""

    one: Tensor
    two: Tensor
    y: Tensor


class TabularDomain:
    """A table under RényiCL's protocol (Lee and Shin 2022, appendix B.5).

    The encoder is trained on the training rows alone. Classifiers are fitted on their embeddings, before the
    projection; what is chosen is chosen on the validation rows, and the accuracy is that on the test rows.
    """

    threads: ClassVar[int] = 1

    def __init__(
        self, dataset: str, recipe: TabularRecipe, seed: int, data_root: Path | None, device: torch.device
    ) -> None:
        table, self.data_hash = load(dataset, recipe.target, data_root)
        data = prepare(table, split(table, seed, recipe.limit), recipe.statistics)
        self.train, self.validation, self.test = (p.to(device) for p in (data.train, data.validation, data.test))
        self.feature_of, self.notes = data.feature_of.to(device), data.notes
        self.seed, self.recipe, self.device = seed, recipe, device
        check_rows(len(self.train.y), int(data.feature_of[-1]) + 1, recipe)
        if self.notes:
            print(f"{dataset}: {'; '.join(f'{what}: {found}' for what, found in self.notes.items())}", file=sys.stderr)

    def model(self, recipe: Recipe) -> nn.Module:
        """Encoder and heads, initialised by the seed."""
        recipe = cast(TabularRecipe, recipe)
        if recipe.encoder == "raw":
            return Raw()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            steps = recipe.epochs * self.steps(recipe)
            return TabularModel(self.train.x.shape[1], recipe, steps).to(self.device)

    def batches(self, recipe: Recipe, epoch: int) -> Iterator[Batch]:
        """Two views of each batch of shuffled rows; a last batch that is not full is left out."""
        size = recipe.batch_size
        rng = generator(self.device, self.seed, epoch, 0)
        order = torch.randperm(len(self.train.y), generator=rng, device=self.device)
        for step in range(self.steps(recipe)):
            rng = generator(self.device, self.seed, epoch, step + 1)
            rows = order[step * size : (step + 1) * size]
            views = two_views(self.train.x, rows, self.feature_of, cast(TabularRecipe, recipe), rng)
            yield Batch(*views, self.train.y[rows])

    def steps(self, recipe: Recipe) -> int:
        """Number of batches in an epoch."""
        return len(self.train.y) // recipe.batch_size

    def contrasts(self, model: nn.Module, batch: Batch) -> list[Contrast]:
        """MoCo v3's pairing with both views as queries, SimCLR's, or SCARF's with the clean rows as queries."""
        one, two, _ = batch
        if self.recipe.pairing == "both_views":
            return [both_views(model(one), model(two))]
        if self.recipe.pairing == "one_way":
            return [query_key(model(one), model(two))]
        moco = cast(TabularModel, model)
        moco.update_target()
        key_one, key_two = moco.targets(one, two)
        return [query_key(moco(one), key_two), query_key(moco(two), key_one)]

    def classes(self, batch: Batch) -> Tensor:
        """The class of each row."""
        return batch.y

    def embeddings(self, model: nn.Module) -> Labelled:
        """The test rows' embeddings, before the projection."""
        return embed(cast(TabularModel, model).encoder.eval(), self.test)

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Accuracy in percent on the test rows of classifiers fitted on the training rows' embeddings."""
        encoder = cast(TabularModel, model).encoder.eval()
        train, validation = (embed(encoder, rows) for rows in (self.train, self.validation))
        names = ("boosting",) if self.recipe.probe == "boosting" else LINEAR
        fitted = {name: CLASSIFIERS[name](train, validation, self.seed) for name in names}
        scores = accuracies_on(encoder, self.test, fitted)
        return Evaluation(
            {"accuracy": scores[self.recipe.probe], **scores}, "accuracy", self.details(fitted, validation)
        )

    def details(self, fitted: dict[str, Classifier], validation: Labelled) -> dict[str, Any]:
        """What the numbers rest on."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        scores = {name: accuracy(classifier, validation) for name, classifier in fitted.items()}
        return {
            "validation": scores[self.recipe.probe],
            "rows": {name: len(part.y) for name, part in parts.items()},
            "largest_class": 100 * self.test.y.bincount().max().item() / len(self.test.y),
            "validation_accuracy": scores,
            "classifiers": {name: classifier.details for name, classifier in fitted.items()},
            "data": self.notes,
        }


def check_rows(rows: int, features: int, recipe: TabularRecipe) -> None:
    """Raise unless there is a batch of rows to train on, and a feature to change."""
    if recipe.trainable and rows < recipe.batch_size:
        raise UserError(f"{rows} training rows are fewer than a batch: --recipe batch_size={max(2, rows // 2)}")
    if recipe.views != "none" and recipe.choice == "exact" and int(recipe.rate * features) == 0:
        raise UserError(f"rate={recipe.rate} of {features} features is less than one: --recipe choice=each")


@torch.no_grad()
def embed(encoder: nn.Module, rows: Labelled) -> Labelled:
    """The rows' embeddings.

    Raises:
        UserError: they are not finite.
    """
    x = torch.cat([encoder(chunk) for chunk in rows.x.split(CHUNK)])
    if not bool(x.isfinite().all()):
        raise UserError("embeddings are not finite: the encoder diverged")
    return Labelled(x, rows.y)


def accuracies_on(encoder: nn.Module, rows: Labelled, fitted: dict[str, Classifier]) -> dict[str, float]:
    """Percent of rows that each classifier gets right; embeddings are never all in memory."""
    right = dict.fromkeys(fitted, 0)
    for x, y in zip(rows.x.split(CHUNK), rows.y.split(CHUNK), strict=True):
        embedded = embed(encoder, Labelled(x, y)).x
        for name, classifier in fitted.items():
            right[name] += int((classifier.predict(embedded) == y).sum())
    return {name: 100 * count / len(rows.y) for name, count in right.items()}
