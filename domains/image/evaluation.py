"""Scores of frozen encoders: features, and linear classifiers trained on views."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from contrastbench.domains.base import generator
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.images import Crops, ImageFiles, Images, ImageSet
from contrastbench.domains.image.policies import Kind, Policy, policy, together, with_blur
from contrastbench.domains.image.views import erase_some, evaluation, normalise, recolour
from contrastbench.domains.model import ContrastiveModel, Raw
from contrastbench.domains.progress import Progress
from contrastbench.domains.scoring.classifiers import Classifier, Labelled
from contrastbench.losses.errors import UserError

Split = Images | ImageFiles
Croppable = Split | Crops
Model = ContrastiveModel | Raw
ROWS = 256  # images embedded at once


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing that turns images into a network's input."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    size: int  # of scored images

    def views(
        self, images: Croppable, policies: Sequence[Policy], rng: torch.Generator
    ) -> list[Tensor]:
        """A view of each image for each policy, one after the other."""
        policies = [replace(policy, fill=self.mean) for policy in policies]
        runs, views = together(policies, images.labels.device), list[Tensor]()
        for (kind, count), crops in zip(runs, images.crops(runs, rng), strict=True):
            views.extend(self.view(crops, kind, rng).chunk(count))
        return views

    def viewed(
        self, images: Split, parts: Sequence[Tensor], kind: Policy, rng: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Views and classes, part by part of the rows; the next images are read meanwhile."""
        part = images.in_turn(parts)
        for number, rows in enumerate(parts):
            (view,) = self.views(part(number), [kind], rng)
            yield view, images.labels[rows]

    def view(self, crops: Tensor, policy: Policy, rng: torch.Generator) -> Tensor:
        """Crops with what follows them; boxes are erased last."""
        x = normalise(recolour(crops, policy, rng), self.mean, self.std)
        return erase_some(x, policy, rng) if policy.erasing else x

    @torch.no_grad()
    def features(self, model: Model, images: Split, task: str = "features") -> Labelled:
        """Features of all images as they are, under the running statistics of batch norm.

        Raises:
            UserError: they are not finite.
        """
        model.eval()
        parts, rows = [], torch.arange(len(images), device=images.labels.device).split(ROWS)
        batch = images.ahead(rows)
        with Progress(len(rows), task) as progress:
            for number in range(len(rows)):
                pixels = batch(number).pixels
                x = normalise(evaluation(pixels, self.size), self.mean, self.std)
                parts.append(model.features(x))
                progress.step()
        x = torch.cat(parts)
        if not bool(x.isfinite().all()):
            raise UserError("features are not finite: the encoder diverged")
        return Labelled(x, images.labels)


def adam(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Make Adam as linear.py of DCL, HCL, ADNCE and AttentionNCE does."""
    return torch.optim.Adam(parameters, lr, weight_decay=1e-6, fused=True)


def sgd(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Make SGD as in RényiCL's appendix, with the momentum of its main_lincls.py."""
    return torch.optim.SGD(parameters, lr, momentum=0.9, fused=True)


def nesterov(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Make Nesterov SGD as in SimCLR's appendix."""
    return torch.optim.SGD(parameters, lr, momentum=0.9, nesterov=True, fused=True)


@dataclass(frozen=True)
class Probe:
    """A linear classifier trained on views of the training images, through the frozen encoder."""

    optimizer: Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]
    lr: float
    batch: int
    epochs: int
    views: Kind
    cosine: bool = False
    statistics_move: bool = (
        False  # of batch norm: released code leaves the encoder in training mode
    )
    # of first weights, with zero biases; None: PyTorch's own
    deviation: float | None = None

    def head(self, columns: int, classes: int) -> nn.Linear:
        """The classifier before its training."""
        head = nn.Linear(columns, classes)
        if self.deviation is not None:
            nn.init.normal_(head.weight, std=self.deviation)
            nn.init.zeros_(head.bias)
        return head

    def policy(self, recipe: ImageRecipe) -> Policy:
        """Return the policy of the probe's views: crops and flips, or SimCLR's."""
        kind = policy(self.views, recipe.size)
        return kind if self.views == "none" else with_blur(kind, recipe.blur)

    def train(
        self,
        model: Model,
        images: Split,
        columns: int,
        preprocessing: Preprocessing,
        kind: Policy,
        seed: int,
        score: Callable[[Model, Classifier], None] = lambda model, classifier: None,
    ) -> tuple[Model, Classifier]:
        """The encoder with the statistics it then has, and the classifier after the last epoch.

        Args:
            model: whose features are classified; it is left as it is.
            images: the training images.
            columns: number of features.
            preprocessing: how images become a network's input.
            kind: what the views are.
            seed: of weights, order and views.
            score: gets both after every epoch, and leaves them as they are.
        """
        model, device = copy.deepcopy(model).requires_grad_(False), images.labels.device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = self.head(columns, int(images.labels.max()) + 1).to(device)
        classifier = Classifier(lambda x: head(x).argmax(dim=1), scores=head)
        optimizer = self.optimizer(head.parameters(), self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.epochs)
        with Progress(self.epochs, "linear classifier") as progress:
            for epoch in range(self.epochs):
                model.train(self.statistics_move)
                rng = generator(device, seed, epoch)
                order = torch.randperm(len(images), generator=rng, device=device)
                for view, y in preprocessing.viewed(images, order.split(self.batch), kind, rng):
                    optimizer.zero_grad()
                    cross_entropy(head(model.features(view)), y).backward()
                    optimizer.step()
                if self.cosine:
                    schedule.step()
                score(model.eval(), classifier)
                progress.step()
        return model, classifier


# paper: the linear.py of DCL, HCL and ADNCE, the score that after the last epoch; AttentionNCE's is
# the same but for its rate on STL-10, and it reports the best epoch on the test set. strict: ours.
# renyicl: appendix B.4, which leaves batch, momentum and schedule open. renyicl-imagenet: B.3, with
# the momentum of main_lincls.py, which reports the best epoch on the test set too. simclr-imagenet:
# appendix B of Chen et al. (2020); its code starts the classifier from zero.
PROBES = {
    "paper": Probe(adam, 1e-3, 512, 100, "base", statistics_move=True),
    "strict": Probe(adam, 1e-3, 512, 100, "base"),
    "renyicl": Probe(sgd, 0.3, 512, 100, "none", cosine=True),
    "renyicl-imagenet": Probe(sgd, 0.1 * 1024 / 256, 1024, 90, "none", cosine=True, deviation=0.01),
    "simclr-imagenet": Probe(nesterov, 1.6, 4096, 90, "none", cosine=True, deviation=0.0),
}


def trained_probe(recipe: ImageRecipe) -> Probe:
    """The recipe's probe, at the recipe's learning rate if it has one."""
    probe = PROBES[recipe.probe]
    return replace(probe, lr=recipe.probe_lr) if recipe.probe_lr else probe


def split(
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


def check_fits_classifiers(
    dataset: str, data: ImageSet, fix: str = "--recipe probe=retrieval, or preset=metric"
) -> None:
    """Raise if no test image is of a class that a classifier could have seen."""
    if not bool(torch.isin(data.test.labels, data.train.labels).any()):
        raise UserError(
            f"{dataset} tests other classes than it trains, which no classifier has seen: {fix}"
        )
