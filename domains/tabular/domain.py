"""Tables of numbers: RényiCL's protocol on any table, any registered loss in place of its own."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor, nn

from contrastbench.domains import exported
from contrastbench.domains.base import Domain, Evaluation
from contrastbench.domains.declaration import TestPart
from contrastbench.domains.model import MOVING_TARGET, Raw, embed_together, moco, pair_views
from contrastbench.domains.probe import write_probe
from contrastbench.domains.random import balanced, check_class_count, generator
from contrastbench.domains.report import doubts_of, small_batch
from contrastbench.domains.samples import Samples
from contrastbench.domains.scoring import classifiers
from contrastbench.domains.scoring.classifiers import Classifier, Labelled
from contrastbench.domains.scoring.linear import linear, plain_linear, pseudo_inverse
from contrastbench.domains.scoring.logistic import logistic
from contrastbench.domains.tabular import DATASETS, TabularRecipe
from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.encoder import CHUNK, TabularModel, embed_rows
from contrastbench.domains.tabular.preprocessing import split_rows, standardise_columns
from contrastbench.domains.tabular.table import Roles
from contrastbench.domains.tabular.views import FeatureLayout, two_views
from contrastbench.errors import UserError
from contrastbench.losses import contrast

Model = TabularModel | Raw


def boosting(train: Labelled, validation: Labelled, seed: int) -> Classifier:
    """scikit-learn's gradient boosting with its defaults: what trees make of the rows."""
    model = HistGradientBoostingClassifier(random_state=seed)
    model.fit(train.x.cpu().numpy(), train.y.cpu().numpy())
    return Classifier(lambda x: classifiers.decisions(model, x))


CLASSIFIERS: dict[str, Callable[[Labelled, Labelled, int], Classifier]] = {
    "linear": linear,
    "plain": plain_linear,
    "pseudo_inverse": pseudo_inverse,
    "logistic": logistic,
    "boosting": boosting,
}
LINEAR_CLASSIFIERS = ("linear", "pseudo_inverse", "logistic")


@dataclass(frozen=True)
class Batch:
    """Rows of a step, by number, and the step's random numbers."""

    rows: Tensor
    rng: torch.Generator


class TabularDomain(Domain[TabularRecipe, Model, Batch]):
    """A table under RényiCL's protocol (Lee and Shin 2022, appendix B.5).

    The encoder is trained on the training rows, or on the validation rows too, whose classes it is
    not told. Classifiers are fitted on the training rows' embeddings, before the projection; what
    is chosen is chosen on the validation rows, and the accuracy is that on the test rows.
    """

    compiles = True

    def read(self) -> None:
        recipe, device = self.recipe, self.device
        roles = recipe.model_dump(include={*Roles._fields} - {"target"})
        table, self.sha256 = load_rows(self.dataset, recipe.target, self.data_root, **roles)
        fit = "paper" if recipe.statistics == "paper" else recipe.pretraining
        fixed = recipe.parts == "fixed"
        seed = 0 if fixed else self.seed
        self.table, self.rows = table, split_rows(table, seed, recipe.limit, recipe.tested)
        data, self.columns, self.table_notes = standardise_columns(table, self.rows, fit)
        self.data = {name: part.to(device) for name, part in data.items()}
        self.pretraining = pretraining_rows(self.data, recipe)
        of_input = torch.tensor(self.columns.feature_of, device=device)
        self.features = FeatureLayout(of_input, len(self.columns.used))
        self.test_part: TestPart = "fixed" if fixed or table.starts else "redrawn"
        self.batch_size = min(recipe.batch_size, len(self.pretraining.y))
        self.uncaptured = MOVING_TARGET if recipe.pairing == "query_key" else ""
        count, exact = self.features.number, recipe.choice == "exact"
        if recipe.views != "none" and exact and int(recipe.rate * count) == 0:
            fix = "give --recipe choice=each"
            raise UserError(f"rate={recipe.rate} of {count} features changes none: {fix}")
        check_class_count(recipe.batch_classes, self.class_count)

    def notes(self, trained: bool) -> dict[str, Any]:
        rows = {"pretraining_rows": len(self.pretraining.y)} if trained else {}
        return {"data": self.table_notes | doubts_of(self.samples(trained)), **rows}

    def samples(self, trained: bool) -> Samples:
        table, used = self.table, np.concatenate(self.rows)
        words, own = len(table.words), self.dataset not in DATASETS
        return Samples(
            "rows",
            {part: len(rows) for part, rows in self.rows._asdict().items()},
            table.y[used],
            table.classes,
            keys=lambda: table.keys(used),
            near=(lambda: table.near_keys(used)) if own else None,
            groups=np.asarray(table.groups)[used] if len(table.groups) else (),
            features={"columns of numbers": len(table.numbers), "columns of words": words},
            notes=self.table_notes | (small_batch(self.batch_size, self.recipe) if trained else {}),
            doubts=table.doubts,
            own=own,
        )

    def model(self) -> Model:
        recipe = self.recipe
        if recipe.encoder == "raw":
            return Raw()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            steps = recipe.length(self.steps())
            return TabularModel(self.columns.width, recipe, steps).to(self.device)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Shuffled rows, part by part; a last batch that is not full is left out."""
        size = self.batch_size
        rng = generator(self.device, self.seed, epoch, 0)
        order = torch.randperm(len(self.pretraining.y), generator=rng, device=self.device)
        for step in range(self.steps()):
            rng = generator(self.device, self.seed, epoch, step + 1)
            rows = order[step * size : (step + 1) * size]
            if classes := self.recipe.batch_classes:
                rows = balanced(self.data["train"].y, classes, size // classes, rng)
            yield Batch(rows, rng)

    def steps(self) -> int:
        return len(self.pretraining.y) // self.batch_size

    @property
    def sample_count(self) -> int:
        return len(self.pretraining.y)

    def views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return two_views(self.pretraining.x, batch.rows, self.features, self.recipe, batch.rng)

    def contrasts(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        return [contrast.indexed(pair, batch.rows) for pair in self.paired(model, batch)]

    def paired(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        """MoCo v3's pairing with both views as queries, SimCLR's, SCARF's, DHEL's, or by class.

        A row without a class, of the validation part, is paired with its other view alone.
        """
        views = self.views(batch)
        if self.recipe.pairing == "query_key":
            assert isinstance(model, TabularModel), "features as they are have no weights to train"
            return moco(model, views)[::-1]
        labels = self.labels(batch) if self.recipe.reads_classes else None
        embedded = (embed_together(model, view) for view in views)
        return pair_views(self.recipe.pairing, *embedded, labels=labels)

    def labels(self, batch: Batch) -> Tensor:
        """Return classes; a row without one has its own."""
        y = self.pretraining.y[batch.rows]
        return y.where(y >= 0, self.class_count + torch.arange(len(y), device=y.device))

    @cached_property
    def class_count(self) -> int:
        return int(self.data["train"].y.max()) + 1

    @property
    def dim(self) -> int:
        return self.recipe.projection[-1]

    def embeddings(self, model: Model) -> Labelled:
        return embedded(model.encoder, self.data["test"])

    def export(self, model: Model, folder: Path) -> None:
        about = {"seed": self.seed, "columns": self.columns.as_json()}
        exported.write_export(folder, "tabular", self.recipe, model.encoder.state_dict(), **about)
        parts = (embedded(model.encoder, self.data[name]) for name in ("train", "validation"))
        write_probe(folder, self.table.classes, *parts)

    def evaluate(self, model: Model) -> Evaluation:
        encoder, probe = model.encoder, self.recipe.probe
        return probe_evaluation(encoder, self.data, probe, self.seed, self.test_part)


def probe_evaluation(
    encoder: nn.Module, parts: Mapping[str, Labelled], probe: str, seed: int, test_part: TestPart
) -> Evaluation:
    """Percent on the test rows of classifiers fitted on the training rows' embeddings."""
    train, validation = (embedded(encoder, parts[name]) for name in ("train", "validation"))
    names = (probe,) if probe == "boosting" else dict.fromkeys((*LINEAR_CLASSIFIERS, probe))
    fitted = {name: CLASSIFIERS[name](train, validation, seed) for name in names}
    scores, y = scores_on(encoder, parts["test"].x, fitted), parts["test"].y
    counts = {name: int((values.argmax(dim=1) == y).sum()) for name, values in scores.items()}
    right = {name: 100 * count / len(y) for name, count in counts.items()}
    held = {k: classifiers.accuracy(fit, validation) for k, fit in fitted.items()}
    return Evaluation(
        {"accuracy": right[probe], **right, **classifiers.beside_accuracy(scores[probe], y)},
        "accuracy",
        validation=held[probe],
        samples={name: len(part.y) for name, part in parts.items()},
        test_part=test_part,
        right=(scores[probe].argmax(dim=1) == y).tolist(),
        details={
            "largest_class": 100 * y.bincount().max().item() / len(y),
            "validation_accuracy": held,
            "classifiers": {name: classifier.details for name, classifier in fitted.items()},
        },
    )


def embedded(encoder: nn.Module, rows: Labelled) -> Labelled:
    return Labelled(embed_rows(encoder.eval(), rows.x), rows.y)


def pretraining_rows(parts: Mapping[str, Labelled], recipe: TabularRecipe) -> Labelled:
    """The rows that the encoder is trained on; those of the validation part without a class."""
    train, validation = parts["train"], parts["validation"]
    if recipe.pretraining == "train":
        return train
    unknown = torch.full_like(validation.y, -1)
    return Labelled(torch.cat([train.x, validation.x]), torch.cat([train.y, unknown]))


def scores_on(encoder: nn.Module, x: Tensor, fitted: dict[str, Classifier]) -> dict[str, Tensor]:
    """(rows, classes) scores by each classifier; embeddings are never all in memory."""
    chunks = (embed_rows(encoder, some) for some in x.split(CHUNK))
    parts = [[classifier.scores(some) for classifier in fitted.values()] for some in chunks]
    columns = zip(fitted, zip(*parts, strict=True), strict=True)
    return {name: torch.cat(some) for name, some in columns}
