"""Adapt synthetic tones: data, a model, batches that become contrasts, and a score."""

import hashlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from contrastbench.domains.base import Domain, Evaluation
from contrastbench.domains.random import generator
from contrastbench.domains.scoring.classifiers import Labelled, accuracy, neighbours
from contrastbench.errors import unknown
from contrastbench.losses.contrast import Contrast, both_views
from contrastbench_audio import DATASETS, AudioRecipe

SPLIT = [280, 60, 60]  # clips to train on, to choose by, to test on
CLIPS, SAMPLES = sum(SPLIT), 256
TIMBRES = np.array([(1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)])  # loudness of three harmonics
K, TEMPERATURE = 10, 0.1  # of the nearest neighbours


def synthesise() -> Labelled:
    """Return clips of any pitch and phase with their timbres; they are the same for every seed."""
    rng, y, harmonic = np.random.default_rng(0), np.arange(CLIPS) % 4, np.arange(1, 4)[:, None]
    pitch, phase = rng.uniform(4, 16, (CLIPS, 1, 1)), rng.uniform(0, 1, (CLIPS, 3, 1))
    waves = np.sin(2 * np.pi * (pitch * harmonic * np.linspace(0, 1, SAMPLES) + phase))
    sound = (TIMBRES[y][:, :, None] * waves).sum(axis=1)
    # 16 bits, as in sound files, because the last bit of a sine differs between CPUs
    pcm = (sound / 3 * 32767).round().astype(np.int16)
    return Labelled(torch.from_numpy(pcm), torch.from_numpy(y))


class AudioModel(nn.Module):
    """An encoder, which is scored, and a projection, which the loss compares."""

    def __init__(self, width: int) -> None:
        super().__init__()
        first = (nn.Conv1d(1, width, 9, stride=4), nn.BatchNorm1d(width), nn.ReLU())
        second = (nn.Conv1d(width, 2 * width, 9, stride=4), nn.ReLU(), nn.AdaptiveMaxPool1d(1))
        self.encoder = nn.Sequential(nn.Unflatten(1, (1, -1)), *first, *second, nn.Flatten())
        self.projector = nn.Linear(2 * width, 2 * width)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (n, 2 * width) projections of (n, samples)."""
        return self.projector(self.encoder(clips))


Batch = tuple[Tensor, Tensor]  # two views of the clips of a step


class AudioDomain(Domain[AudioRecipe, AudioModel, Batch]):
    """Synthetic tones in a fixed split."""

    def read(self) -> None:
        """Make the clips and split them."""
        if self.dataset not in DATASETS:
            raise unknown("audio dataset", self.dataset, DATASETS)
        pcm, y = synthesise()
        # of all clips, because every model is scored on the same ones
        self.sha256 = hashlib.sha256(pcm.numpy().tobytes() + y.numpy().tobytes()).hexdigest()
        clips = Labelled(pcm.float() / 32767, y).to(self.device)
        splits = zip(clips.x.split(SPLIT), clips.y.split(SPLIT), strict=True)
        train, self.validation, self.test = (Labelled(x, y) for x, y in splits)
        self.train = Labelled(train.x[: self.recipe.limit], train.y[: self.recipe.limit])

    def model(self) -> AudioModel:
        """Return a model that the seed initialises; the global random state stays as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return AudioModel(self.recipe.width).to(self.device)

    def steps(self) -> int:
        """Return the number of full batches."""
        return len(self.train.y) // self.recipe.batch_size

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Yield two views of each clip, in an order that seed and epoch decide."""
        rng = generator(self.device, self.seed, epoch)
        order = torch.randperm(len(self.train.y), generator=rng, device=self.device)
        for rows in order.split(self.recipe.batch_size)[: self.steps()]:
            yield self.view(self.train.x[rows], rng), self.view(self.train.x[rows], rng)

    def view(self, clips: Tensor, rng: torch.Generator) -> Tensor:
        """Return clips that are shifted in a circle, with noise."""
        shift = int(torch.randint(SAMPLES, (), generator=rng, device=self.device))
        noise = torch.randn(clips.shape, generator=rng, device=self.device)
        return clips.roll(shift, dims=1) + self.recipe.noise * noise

    def contrasts(self, model: AudioModel, batch: Batch) -> list[Contrast]:
        """Pair the views as SimCLR does."""
        one, two = batch
        return [both_views(model(one), model(two))]

    @torch.no_grad()
    def evaluate(self, model: AudioModel) -> Evaluation:
        """Score the encoder by nearest neighbours among the training clips."""
        clips = {"train": self.train, "validation": self.validation, "test": self.test}
        encoder = model.eval().encoder
        rows = {split: Labelled(encoder(x), y) for split, (x, y) in clips.items()}
        knn = neighbours(rows["train"], K, TEMPERATURE)
        return Evaluation(
            {"accuracy": accuracy(knn, rows["test"])},
            main="accuracy",
            validation=accuracy(knn, rows["validation"]),
            samples={split: len(y) for split, (_, y) in clips.items()},
        )
