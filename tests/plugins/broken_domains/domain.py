"""The audio domain with one fault in each class."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import torch
from contrastbench_audio.domain import AudioDomain, AudioModel, Batch
from torch import Tensor
from torch.nn.functional import dropout

from contrastbench.domains.base import Evaluation
from contrastbench.domains.random import generator
from contrastbench.losses.contrast import Contrast, both_views


class Seedless(AudioDomain):
    """Every seed gives the same weights."""

    def model(self) -> AudioModel:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return AudioModel(self.recipe.width)


class GlobalDraws(AudioDomain):
    """Batches are drawn from the global random state."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        for one, two in super().batches(epoch):
            yield one, two + 0.1 * torch.randn(two.shape)


class EpochsInOrder(AudioDomain):
    """An epoch's batches depend on which epochs were asked for before."""

    asked = 0

    def batches(self, epoch: int) -> Iterator[Batch]:
        self.asked += 1
        return super().batches(self.asked)


class WrongSteps(AudioDomain):
    """The batches of an epoch are one more than `steps` says."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        *others, last = super().batches(epoch)
        yield from (*others, last, last)


class LongRows(AudioDomain):
    """Rows are not of length one."""

    def contrasts(self, model: AudioModel, batch: Batch) -> list[Contrast]:
        return [replace(c, anchor=2 * c.anchor) for c in super().contrasts(model, batch)]


class StrayDraws(AudioDomain):
    """Contrasts are drawn from the global random state."""

    def contrasts(self, model: AudioModel, batch: Batch) -> list[Contrast]:
        one, two = batch
        with torch.random.fork_rng(devices=[]):
            return [both_views(model(one), model(two + 0.1 * torch.randn(two.shape)))]


class GlobalDropout(AudioDomain):
    """Dropout draws from the global random state, as `nn.Dropout` does."""

    def contrasts(self, model: AudioModel, batch: Batch) -> list[Contrast]:
        return [both_views(*(dropout(model(view), 0.1) for view in batch))]


class Counting(AudioModel):
    """Its embeddings depend on how often it was asked, which no checkpoint knows."""

    calls = 0

    def forward(self, clips: Tensor) -> Tensor:
        self.calls += 1
        z = super().forward(clips)
        return z + 0.1 * self.calls * z.roll(1, dims=1)


class HiddenState(AudioDomain):
    """The model has a state outside its state_dict."""

    def model(self) -> AudioModel:
        model = Counting(self.recipe.width)
        model.load_state_dict(super().model().state_dict())
        return model


class HashOfADraw(AudioDomain):
    """The data hash is another for another seed."""

    def data_hash(self, trained: bool) -> str:
        rows = torch.randperm(len(self.train.y), generator=generator(self.device, self.seed))
        return hashlib.sha256(self.train.x[rows].numpy().tobytes()).hexdigest()


class HashByMd5(AudioDomain):
    """The data hash is hexadecimal, of another kind."""

    def data_hash(self, trained: bool) -> str:
        return hashlib.md5(self.train.x.numpy().tobytes(), usedforsecurity=False).hexdigest()


class OneHash(AudioDomain):
    """Another data set has the data hash of the first."""

    def read(self) -> None:
        self.dataset = "tones"
        super().read()


class HashOfUse(AudioDomain):
    """The data hash is another once `steps` was asked for."""

    def steps(self) -> int:
        self.sha256 = hashlib.sha256(b"steps").hexdigest()
        return super().steps()


class TrainsOn(AudioDomain):
    """Evaluation is in training mode, which moves the statistics of batch norm."""

    def evaluate(self, model: AudioModel) -> Evaluation:
        model.train()
        with torch.no_grad():
            model(self.test.x)
        return super().evaluate(model)


class ScoresByChance(AudioDomain):
    """The score is drawn from the global random state."""

    def evaluate(self, model: AudioModel) -> Evaluation:
        return replace(super().evaluate(model), metrics={"accuracy": 100 * torch.rand(()).item()})


class FoldsWithoutInner(AudioDomain):
    """The folds turn, and nothing tells what each would choose."""

    def evaluate(self, model: AudioModel) -> Evaluation:
        scored = super().evaluate(model)
        return replace(scored, folds=[scored.metrics[scored.main]] * 2, inner=[50.0])
