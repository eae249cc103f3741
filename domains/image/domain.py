"""Images: SimCLR, MoCo v3, multi-crop and metric learning with any registered loss."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrastbench.domains.base import Domain, Evaluation, samples_drawn
from contrastbench.domains.image import sampling
from contrastbench.domains.image.data.datasets import DATASETS
from contrastbench.domains.image.data.decode import cancel_decoding
from contrastbench.domains.image.data.images import Croppable, ImageFiles, Images, Request, held_out
from contrastbench.domains.image.data.own import ADAPTER, load_images
from contrastbench.domains.image.data.report import image_samples
from contrastbench.domains.image.networks.exports import Encoder, export
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.preprocessing import Model, Preprocessing, policies
from contrastbench.domains.image.recipe import CONVNET, PROBES, ImageRecipe
from contrastbench.domains.image.scoring.linear_probe import policy_of, train_probe
from contrastbench.domains.image.scoring.protocols import check_fits_classifiers, score_opened
from contrastbench.domains.image.scoring.protocols import check_scored_classes as check_protocol
from contrastbench.domains.model import MOVING_TARGET, Raw, embed_together, moco, pair_views
from contrastbench.domains.probe import write_probe
from contrastbench.domains.random import balanced, check_class_count, generator
from contrastbench.domains.report import small_batch
from contrastbench.domains.samples import Samples
from contrastbench.domains.scoring import classifiers
from contrastbench.domains.scoring.classifiers import Classifier, Labelled, neighbours
from contrastbench.domains.scoring.logistic import regularised
from contrastbench.domains.scoring.retrieval import recall_at_1, retrieval
from contrastbench.errors import UserError, tell
from contrastbench.losses import contrast

TINY_SIZE = 16  # pixels a side up to which one thread is the fastest
BEST_ON_TEST = "accuracy_best_epoch_on_test"  # the metric that AttentionNCE's code reports
TOP_5 = "top_5"
QUICK_GRID = (1e-3, 1e-2, 1e-1)  # C of the quick probe


@dataclass(frozen=True)
class Batch:
    """Images of a step, by number, and the step's random numbers."""

    rows: Tensor
    rng: torch.Generator
    files: Callable[[], Croppable] | None = None  # what is decoded; None: pixels are in memory


class ImageDomain(Domain[ImageRecipe, Model, Batch]):
    """Images by SimCLR and MoCo v3, as in ADNCE's released code and in RényiCL's appendix.

    An encoder is trained on the training images but those of the validation part, and on unlabelled
    ones if there are any; classifiers are fitted on its features, before the projection. What is
    chosen is chosen on the validation images, and the accuracies are those on the test images,
    which are seen once.
    """

    compiles = True

    def read(self) -> None:
        dataset, recipe, device = self.dataset, self.recipe, self.device
        more = recipe.whole_pictures, recipe.groups
        asked = Request(recipe.size, self.data_root, device, *more)
        data, self.sha256 = ADAPTER.read(dataset, self.data_root, asked)
        side = data.train.batch(torch.zeros(1, dtype=torch.long, device=device)).shape[-1]
        if recipe.size <= min(TINY_SIZE, side // 2):
            seen = f"images of {side} pixels, views of {recipe.size}"
            tell(f"{dataset}: {seen}: try --recipe preset=cpu")
        tiny = recipe.size <= TINY_SIZE or recipe.encoder == CONVNET
        self.threads = 1 if tiny else os.cpu_count() or 1
        self.preprocessing = Preprocessing(data.mean, data.std, recipe.test_size or recipe.size)
        self.image_notes, self.class_names = data.notes, data.classes
        if data.test.labels.ndim > 1:
            raise UserError(f"images of {dataset} have several classes: bench score --by transfer")
        if not recipe.ranks:
            check_fits_classifiers(dataset, data)
        self.check_further()
        # other sets' records were chosen by a share of their training images
        last = data.validation if dataset.startswith("npz:") else 0
        train, validation = sampling.held_out_split(
            data.train, recipe.validation, self.seed, recipe.limit, last=last
        )
        test, _ = sampling.held_out_split(data.test, 0.0, self.seed, recipe.limit)
        parts = {"train": train, "validation": validation, "test": test}
        self.splits = {name: part for name, part in parts.items() if part is not None}
        if recipe.ranks:
            for part in self.splits.keys() - {"train"}:
                with samples_drawn(recipe):
                    sampling.check_retrievable(part, self.splits[part].labels)
        pool = sampling.with_unlabelled(train, None if recipe.reads_classes else data.unlabelled)
        self.pool = replace(pool, groups=())  # which steps do not ask for
        self.uncaptured = self.host_work
        check_class_count(recipe.batch_classes, len(train.labels.unique()))
        if recipe.pairing == "balanced":
            with samples_drawn(recipe):
                sampling.check_balance(train.labels, recipe)

    def check_further(self) -> None:
        if not self.further:
            return
        digest, host = hashlib.sha256(self.sha256.encode()), torch.device("cpu")
        for by, dataset in self.further.values():
            images, content = load_images(dataset, self.preprocessing.size, self.data_root, host)
            check_protocol(dataset, images, by)
            digest.update(content.encode())
        self.sha256 = digest.hexdigest()

    @property
    def further(self) -> dict[str, tuple[str, str]]:
        words = {entry: entry.partition(":") for entry in self.recipe.further_scores}
        return {entry: (by, dataset or self.dataset) for entry, (by, _, dataset) in words.items()}

    def notes(self, trained: bool) -> dict[str, Any]:
        return {"data": self.image_notes}

    def samples(self, trained: bool) -> Samples:
        smaller = small_batch(self.batch_size, self.recipe) if trained else {}
        own, k, few = self.dataset not in DATASETS, self.recipe.knn_k, len(self.splits["train"])
        cut = few < k and "knn_k" not in self.recipe.idle(trained)
        smaller |= {f"neighbours that vote, all in place of knn_k={k}": few} if cut else {}
        return image_samples(self.splits, self.class_names, self.image_notes, own, smaller)

    @property
    def host_work(self) -> str:
        """Return what the host does in a step besides launching, or nothing."""
        if not isinstance(self.pool, Images):
            return "images are read from files"
        if any(policy.randaugment for policy in policies(self.recipe)):
            return "RandAugment groups the images of a step by operation"
        return MOVING_TARGET if self.recipe.pairing == "query_key" else ""

    @property
    def batch_size(self) -> int:
        return min(self.recipe.batch_size, len(self.pool))

    def model(self) -> Model:
        recipe = self.recipe
        if recipe.encoder == "raw":
            return Raw()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            steps = recipe.length(self.steps())
            model = ImageModel(recipe, steps, self.data_root).to(self.device)
        return model

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The images in an order of the epoch's; a last batch that is not full is left out."""
        rows = self.order(generator(self.device, self.seed, epoch, 0))
        if self.recipe.pairing == "supervised":
            sampling.check_batch_classes(self.splits["train"].labels[rows], len(self.pool))
        rngs = [generator(self.device, self.seed, epoch, k + 1) for k in range(self.steps())]
        ahead = None
        if isinstance(self.pool, ImageFiles):
            ahead = self.pool.crops_ahead(rows.unbind(), policies(self.recipe), rngs)
        try:
            for step, rng in enumerate(rngs):
                yield Batch(rows[step], rng, ahead and partial(ahead, step))
        except GeneratorExit:  # the training ends before the epoch
            cancel_decoding()
            raise

    def order(self, rng: torch.Generator) -> Tensor:
        """(steps, batch) numbers of images: of all in turn, or balanced over classes."""
        size, steps, classes = self.batch_size, self.steps(), self.recipe.batch_classes
        if classes or self.recipe.pairing == "balanced":
            labels = self.splits["train"].labels
            per_class = size // classes if classes else self.recipe.samples_per_class
            kinds = size // per_class
            return torch.stack([balanced(labels, kinds, per_class, rng) for _ in range(steps)])
        order = torch.randperm(len(self.pool), generator=rng, device=self.device)
        return order[: steps * size].view(-1, size)

    def steps(self) -> int:
        return len(self.pool) // self.batch_size

    @property
    def sample_count(self) -> int:
        return len(self.pool)

    def contrasts(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        return [contrast.indexed(pair, batch.rows) for pair in self.paired(model, batch)]

    def paired(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        images = batch.files() if batch.files else self.pool.select(batch.rows)
        views = self.views(images, batch.rng)
        if self.recipe.pairing == "query_key":
            assert isinstance(model, ImageModel), "pixels as they are have no weights to train"
            return moco(model, views)
        labels = images.labels if self.recipe.reads_classes else None
        embedded = (embed_together(model, view) for view in views)
        return pair_views(self.recipe.pairing, *embedded, labels=labels)

    @cached_property
    def class_count(self) -> int:
        return int(self.splits["train"].labels.max()) + 1

    @property
    def dim(self) -> int:
        return self.recipe.projection[-1]

    def views(self, images: Croppable, rng: torch.Generator) -> list[Tensor]:
        return self.preprocessing.views(images, policies(self.recipe), rng)

    def validate(self, model: Model) -> float:
        """Accuracy in percent of nearest neighbours on the validation images."""
        train, validation = (self.features(model, name) for name in ("train", "validation"))
        return classifiers.accuracy(self.nearest(train), validation)

    def nearest(self, train: Labelled) -> Classifier:
        return neighbours(train, self.recipe.knn_k, self.recipe.neighbours_temperature)

    def features(self, model: Model, part: str) -> Labelled:
        return self.preprocessing.features(model, self.splits[part], f"features of {part} images")

    def embeddings(self, model: Model) -> Labelled:
        return self.features(model, "test")

    def evaluate(self, model: Model) -> Evaluation:
        own = self.ranked(model) if self.recipe.ranks else self.probe(model)
        opened, metrics = Encoder(model, self.preprocessing, self.device), dict(own.metrics)
        for entry, (by, dataset) in self.further.items():
            scores = score_opened(opened, dataset, by, self.seed, self.data_root, self.device)
            metrics |= {f"{entry}.{name}": value for name, value in scores.items()}
        return replace(own, metrics=metrics)

    def probe(self, model: Model) -> Evaluation:
        rows = {name: self.features(model, name) for name in self.splits}
        if self.recipe.probe == "quick":
            return self.quick_probe(rows)
        fitted = {
            "lbfgs": regularised(rows["train"], rows.get("validation")),
            "knn": self.nearest(rows["train"]),
        }
        scores = {
            part: {key: scored(classifier, some) for key, classifier in fitted.items()}
            for part, some in rows.items()
            if part != "train"
        }
        by_epoch: dict[str, list[float]] = {}
        if self.recipe.probe in PROBES:
            by_epoch, last = self.probe_by_epoch(model, rows)
            for part, labelled in last.items():
                scores[part][self.recipe.probe] = labelled
        return self.evaluation(scores, fitted, by_epoch)

    def quick_probe(self, rows: dict[str, Labelled]) -> Evaluation:
        """Accuracy of logistic regression, its C of three chosen on validation images.

        Without these a fifth of the training images chooses; then C is fitted to all of them.
        """
        train, validation = rows["train"], rows.get("validation")
        if validation:
            classifier = chosen = regularised(train, validation, QUICK_GRID)
        else:
            out = held_out(train.y.cpu(), self.splits["train"].groups).to(train.y.device)
            fit, validation = (Labelled(train.x[part], train.y[part]) for part in (~out, out))
            chosen = regularised(fit, validation, QUICK_GRID)
            classifier = regularised(train, None, (chosen.details["C"],))
        scores = {
            "test": {"quick": scored(classifier, rows["test"])},
            "validation": {"quick": scored(chosen, validation)},
        }
        return self.evaluation(scores, {"quick": chosen}, {})

    def ranked(self, model: Model) -> Evaluation:
        """Recalls, MAP at R and NMI of the test images; validation images choose by the first."""
        scores, whole = {}, self.recipe.probe == "retrieval"
        for name in [name for name in self.splits if name != "train"]:
            rows = self.features(model, name)  # recall at 1 alone needs no clusters
            scores[name] = retrieval(rows) if whole else {"recall_at_1": recall_at_1(rows)}
        chosen_by = scores.get("validation")
        return Evaluation(
            scores["test"],
            "recall_at_1",
            validation=chosen_by["recall_at_1"] if chosen_by else None,
            samples=self.counts,
            details={"training_images": len(self.pool), "validation_scores": chosen_by},
        )

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(part) for name, part in self.splits.items()}

    def export(self, model: Model, folder: Path) -> None:
        assert isinstance(model, ImageModel), "pixels have been refused"
        export(model, self.recipe, self.preprocessing, folder)
        if not self.recipe.ranks:
            rows = {part: self.features(model, part) for part in self.splits if part != "test"}
            write_probe(folder, self.class_names, rows["train"], rows.get("validation"))

    def probe_by_epoch(
        self, model: Model, rows: dict[str, Labelled]
    ) -> tuple[dict[str, list[float]], dict[str, Labelled]]:
        """Accuracies on held-out parts of the probe that sees views, by epoch, and last scores.

        Where the encoder's statistics move, its features are made anew each time, as the released
        codes do: with the recipe of a paper, a few percent of the time of the encoder's training.
        """
        probe = self.recipe.probe_on_views
        held_out = [name for name in self.splits if name != "train"]
        by_epoch: dict[str, list[float]] = {name: [] for name in held_out}
        last: dict[str, Labelled] = {}
        if probe.top_5:
            by_epoch[TOP_5] = []

        def score(moved: Model, classifier: Classifier) -> None:
            for name in held_out:
                now = self.features(moved, name) if probe.statistics_move else rows[name]
                last[name] = scored(classifier, now)
                by_epoch[name].append(classifiers.accuracy_of(*last[name]))
            if TOP_5 in by_epoch:
                by_epoch[TOP_5].append(classifiers.accuracy_within(*last["test"], 5))

        images, columns = self.splits["train"], rows["train"].x.shape[1]
        kind = policy_of(probe, self.recipe)
        train_probe(probe, model, images, columns, self.preprocessing, kind, self.seed, score)
        return by_epoch, last

    def evaluation(
        self,
        scores: dict[str, dict[str, Labelled]],
        fitted: dict[str, Classifier],
        by_epoch: dict[str, list[float]],
    ) -> Evaluation:
        """Scores of held-out parts by classifier, with what the record tells beside them.

        A probe's epoch that is chosen on the test images gives no honest number: it is there
        because released codes report it.
        """
        right = {
            part: {key: classifiers.accuracy_of(*labelled) for key, labelled in some.items()}
            for part, some in scores.items()
        }
        test, validation = scores["test"][self.recipe.probe], right.get("validation")
        best = {BEST_ON_TEST: max(by_epoch["test"])} if by_epoch else {}
        best |= {TOP_5: by_epoch[TOP_5][-1]} if TOP_5 in by_epoch else {}
        accuracies = {"accuracy": right["test"][self.recipe.probe], **right["test"], **best}
        return Evaluation(
            accuracies | classifiers.beside_accuracy(*test),
            "accuracy",
            validation=validation[self.recipe.probe] if validation else None,
            samples=self.counts,
            right=(test.x.argmax(dim=1) == test.y).tolist(),
            details={
                "training_images": len(self.pool),
                "largest_class": 100 * test.y.bincount().max().item() / len(test.y),
                "validation_accuracy": validation,
                "classifiers": {name: classifier.details for name, classifier in fitted.items()},
                **({"probe_accuracy_by_epoch": by_epoch} if by_epoch else {}),
            },
        )


def scored(classifier: Classifier, rows: Labelled) -> Labelled:
    return Labelled(classifier.scores(rows.x), rows.y)
