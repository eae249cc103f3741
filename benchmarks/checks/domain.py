"""Check what every domain must satisfy, on a domain of ours or of a package.

Each check takes the domain under check and raises AssertionError: what is wrong, and what to do.
The global generators are seeded wherever a check does not ask whether they matter, so that a
fault fails the one check that is about it. Everything runs on the CPU, on the domain's tiny recipe.
"""

import copy
import json
import math
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import torch
from joblib import cpu_count
from torch import Tensor, nn

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.history import History
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.runner import as_details
from contrastbench.benchmarks.running.training import AnyDomain, Look, train
from contrastbench.domains.base import Domain, Evaluation, NumbersSamples
from contrastbench.domains.declaration import Declaration, TestPart
from contrastbench.domains.registry import declaration, domain_class, make_recipe
from contrastbench.errors import users_code
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import CheckResult
from contrastbench.losses.laws.assertions import Law
from contrastbench.losses.laws.battery import outcome, plain_cause
from contrastbench.losses.laws.limits import pairing_of
from contrastbench.losses.pairing import Pairing
from contrastbench.losses.spec import LossSpec

Batches = Callable[[int], Iterable[Any]]  # of an epoch

UNIT = 1e-3  # how far a row's length may be from 1: bfloat16 rounds by 4e-3 of a coordinate
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Subject:
    """The domain that is checked."""

    experiment: Experiment
    device: torch.device = CPU

    @property
    def about(self) -> Declaration:
        return declaration(self.experiment.domain)

    def open(self, seed: int = 0, dataset: str | None = None) -> AnyDomain:
        """Open one of its datasets anew, silently."""
        experiment = replace(self.experiment, dataset=dataset or self.experiment.dataset)
        disturb_generators(0)
        with redirect_stderr(StringIO()):
            return open_domain(experiment, seed, None, self.device)

    def train(
        self, checkpoint: Path | None = None, look: Look | None = None
    ) -> tuple[nn.Module, History]:
        """Train a model for the recipe's epochs, as if nothing in it drew from global generators.

        Draws from these are what the checks of batches and contrasts are about.
        """
        domain, loss = self.open(), self.experiment.loss.make()
        assert loss is not None, "a check trains"
        vars(domain)["batches"] = without_global_draws(domain.batches)
        disturb_generators(0)
        return train(domain, loss.to(self.device), checkpoint, look=look)


def check_domain(name: str) -> list[CheckResult]:
    """Run every check on a domain, on its default dataset by its tiny recipe."""
    about = declaration(name)
    subject = Subject(Experiment(name, about.default, LossSpec("infonce"), about.tiny))
    with users_code(f"open domain {name}"):
        threads = subject.open().threads
    torch.set_num_threads(min(threads, cpu_count()))  # as a run does
    return [outcome(law, partial(law.check, subject), plain_cause) for law in CHECKS]


def check_declaration(subject: Subject) -> None:
    """The default dataset is embedded; the tiny recipe has a protocol and fits a record."""
    name, about = subject.experiment.domain, subject.about
    url = about.datasets[about.default].url
    assert not url, f"the default {about.default!r} is downloaded: embed a small dataset"
    recipe = make_recipe(name, about.tiny)
    protocol: object = recipe.protocol
    assert isinstance(protocol, str), f"protocol is {protocol!r}: return a name and a version"
    assert protocol, "protocol is empty: return a name and a version, such as 'tones/1'"
    restored = make_recipe(name, json.loads(json.dumps(recipe.model_dump(mode="json"))))
    assert restored == recipe, "the recipe read from a record is another: use plain field types"
    kind = domain_class(name)
    assert issubclass(kind, Domain), f"{kind.__name__} is no Domain: derive it from domains.base"


def check_model(subject: Subject) -> None:
    """The seed alone decides a model's weights."""
    weights = []
    for seed, disturbance in ((0, 1), (0, 2), (1, 1)):
        domain = subject.open(seed)
        disturb_generators(disturbance)
        weights.append(domain.model().state_dict())
    name = differing_tensor(weights[0], weights[1])
    assert name is None, f"one seed gives two models ({name} differs)"
    assert differing_tensor(weights[0], weights[2]), "all seeds give one model"


def check_batches(subject: Subject) -> None:
    """Batches depend on seed and epoch alone, whatever was asked for before."""
    domain, again, other = subject.open(), subject.open(), subject.open(1)
    model = domain.model()
    epochs = [views(domain, model, epoch, 0) for epoch in (0, 1)]
    for epoch in (1, 1, 0):  # not as a training asks
        same = equal_bits(views(again, model, epoch, 1), epochs[epoch])
        assert same, f"epoch {epoch} is not the same when asked for in another order"
    assert not equal_bits(views(other, model, 0, 0), epochs[0]), "all seeds give the same views"
    assert not equal_bits(*epochs), "all epochs give the same views"


def check_steps(subject: Subject) -> None:
    """`steps` is the number of batches of every epoch."""
    domain = subject.open()
    for epoch in range(2):
        steps, batches = domain.steps(), len(list(domain.batches(epoch)))
        assert batches, f"epoch {epoch} has no batch: give the tiny recipe a smaller batch_size"
        assert steps == batches, f"steps() is {steps}, but epoch {epoch} has {batches} batches"


def check_contrasts(subject: Subject) -> None:
    """Unit rows, valid ids, negatives for all anchors, gradients; no stray draws."""
    model, contrasts = first_contrasts(subject, 0)
    assert contrasts, "a batch gives no contrast"
    for contrast in contrasts:
        check_rows(contrast)
        check_ids(contrast)
        check_facts(contrast, subject.experiment.full_recipe.pairing_facts)
        check_index(contrast, subject.open())
    check_gradients(model, contrasts, subject.experiment.loss)
    again = contrast_tensors(first_contrasts(subject, 1)[1])
    fix = "draw from a generator or seed that the batch carries"
    same = equal_bits(contrast_tensors(contrasts), again)
    assert same, f"a batch gives two contrasts: {fix}"


def check_resume(subject: Subject) -> None:
    """A training that is interrupted and resumed ends in the same bits as one that is not."""
    model, history = subject.train()
    stop = max(1, subject.open().steps() // 2)
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "training.safetensors"
        with suppress(KeyboardInterrupt):
            subject.train(checkpoint, interrupt(stop))
        assert checkpoint.exists(), "no checkpoint was written: check in a process's main thread"
        resumed, later = subject.train(checkpoint)
    name = differing_tensor(model.state_dict(), resumed.state_dict())
    assert name is None, f"{name} differs after an interruption at step {stop}"
    assert later == history, f"the losses differ after an interruption at step {stop}"


def check_data_hash(subject: Subject) -> None:
    """The data hash is a sha256 of the data alone, and differs between embedded datasets."""
    domain, another = subject.open(0), subject.open(1)
    hashes = data_hashes(domain)
    for digest in hashes:
        sha256 = len(digest) == 64 and not set(digest) - set("0123456789abcdef")
        assert sha256, f"data_hash gives {digest!r}, which is no sha256"
    assert data_hashes(another) == hashes, "two openings give two data hashes"
    domain.model(), domain.steps(), list(domain.batches(0))
    assert data_hashes(domain) == hashes, "data_hash changes as the domain is used"
    own, embedded = subject.experiment.dataset, subject.about.datasets.items()
    for name in sorted(name for name, dataset in embedded if not dataset.url and name != own):
        same = data_hashes(subject.open(dataset=name)) == hashes
        assert not same, f"{name} and {own} have one data hash"


def check_evaluation(subject: Subject) -> None:
    """`evaluate` leaves the model alone and gives the same numbers again, fit for a record."""
    model, _ = subject.train()
    before = copy.deepcopy(model.state_dict())
    scores = []
    for disturbance in (1, 2):
        domain = subject.open()
        disturb_generators(disturbance)
        scores.append(domain.evaluate(model))
    first, second = scores
    name = differing_tensor(before, model.state_dict())
    fix = "key all draws of the scoring by the seed, and draw them from generators of its own"
    assert name is None, f"evaluate changes {name}: score in eval mode, and train copies alone"
    assert first.metrics == second.metrics, f"a model has two scores: {fix}"
    check_numbers(first, subject.experiment.full_recipe.nested)
    store.canonical({**as_details(first), **subject.open().notes(trained=True)})


CHECKS = [  # with what helps, where the check itself does not say it
    Law(check_declaration),
    Law(check_model, remedy="initialise under torch.random.fork_rng and manual_seed(self.seed)"),
    Law(check_batches, remedy="draw from generator(device, seed, epoch)"),
    Law(check_steps),
    Law(check_contrasts),
    Law(check_resume, remedy="keep all that training changes in the model's state_dict"),
    Law(check_data_hash, remedy="give a sha256 of samples in a fixed order, not of files or draws"),
    Law(check_evaluation),
]


def disturb_generators(seed: int) -> None:
    """Seed the process's global generators, which no domain should use."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def without_global_draws(batches: Batches) -> Batches:
    """Return the same batches, with the global generators seeded before each draw."""

    def of(epoch: int) -> Iterator[Any]:
        disturb_generators(epoch)
        for batch in batches(epoch):
            disturb_generators(epoch)
            yield batch
            disturb_generators(epoch)

    return of


def views(domain: AnyDomain, model: nn.Module, epoch: int, disturbance: int) -> list[Tensor]:
    """Return a model copy's embeddings of an epoch's batches, drawn after a disturbance."""
    disturb_generators(disturbance)
    batches, model = list(domain.batches(epoch)), copy.deepcopy(model).train()
    disturb_generators(0)
    return [x for batch in batches for x in contrast_tensors(contrasts_of(domain, model, batch))]


def first_contrasts(subject: Subject, disturbance: int) -> tuple[nn.Module, Sequence[Contrast]]:
    """Return a new model and its contrasts of the first batch, made after a disturbance."""
    domain = subject.open()
    model, batch = domain.model().train(), next(iter(domain.batches(0)))
    disturb_generators(disturbance)
    return model, contrasts_of(domain, model, batch)


def contrasts_of(domain: AnyDomain, model: nn.Module, batch: Any) -> Sequence[Contrast]:
    """Return the contrasts of a batch, which are a list of them."""
    contrasts = domain.contrasts(model, batch)
    given = f"contrasts() gives one {type(contrasts).__name__}: give a list of them, [contrast]"
    assert isinstance(contrasts, Sequence), given
    return contrasts


def interrupt(stop: int) -> Look:
    """Raise KeyboardInterrupt within the step of that number."""
    seen = []

    def look(contrasts: Sequence[Contrast], batch: Any) -> Sequence[Contrast]:
        seen.append(len(contrasts))
        if len(seen) == stop:
            signal.raise_signal(signal.SIGINT)
        return contrasts

    return look


def check_rows(contrast: Contrast) -> None:
    """Fail unless all rows but padding are finite and of length one."""
    mask = slice(None) if contrast.padding is None else ~contrast.padding
    positive = contrast.positives()[mask]
    rows = {"anchor": contrast.anchor, "positive": positive, "keys": contrast.keys}
    for name, x in rows.items():
        assert x.isfinite().all(), f"{name} has rows that are not finite"
        error = (x.norm(dim=-1) - 1).abs().max().item()
        fix = "make contrasts by a pairing such as losses.both_views"
        assert error < UNIT, f"{name} has rows that are {error:.2g} off length one: {fix}"


def check_facts(contrast: Contrast, said: Pairing | None) -> None:
    """Fail unless the contrast is as the recipe's pairing facts say."""
    facts = pairing_of(contrast)
    fix = "return it, or None, in the recipe's pairing_facts"
    assert said in (None, facts), f"the recipe says {said}, but a contrast has {facts}: {fix}"


def check_ids(contrast: Contrast) -> None:
    """Fail unless ids are valid and leave every anchor a negative."""
    assert (contrast.anchor_id >= 0).all(), "an anchor's id is below 0: count samples from 0"
    assert (contrast.key_id >= -1).all(), "a key's id is below -1: -1 is everybody's negative"
    key = contrast.positive_key
    in_range = key is None or bool(((key >= 0) & (key < len(contrast.keys))).all())
    assert in_range, "positive_key is no key's number: give rows of keys"
    negative = contrast.anchor_id.unsqueeze(1) != contrast.key_id
    lonely = int((~negative.any(dim=1)).sum())
    assert not lonely, f"{lonely} anchors have no negative: give samples ids of their own"


def check_index(contrast: Contrast, domain: AnyDomain) -> None:
    """Fail unless a domain that numbers its samples tells those of all anchors."""
    if not isinstance(domain, NumbersSamples):
        return
    fix = "give indexed(contrast, rows), with the training set's row of each sample"
    index = contrast.index
    assert index is not None, f"the domain has a sample_count, and a contrast no index: {fix}"
    valid = (index >= 0) & (index < domain.sample_count)
    assert valid.all(), f"index is none of {domain.sample_count} samples: {fix}"
    pairs = torch.stack([index, contrast.anchor_id], dim=1)
    assert len(pairs.unique(dim=0)) == len(index.unique()), f"a sample has two ids: {fix}"


def check_gradients(model: nn.Module, contrasts: Sequence[Contrast], loss: LossSpec) -> None:
    """Fail unless a loss of the contrasts gives the model finite gradients."""
    infonce = loss.make()
    assert infonce is not None
    torch.stack([infonce(contrast) for contrast in contrasts]).sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    for name, gradient in gradients.items():
        assert gradient.isfinite().all(), f"the gradient of {name} is not finite"
    moved = any(bool(gradient.any()) for gradient in gradients.values())
    assert moved, "no gradient reaches the model: contrasts must not detach its embeddings"


def check_numbers(evaluation: Evaluation, nested: bool) -> None:
    """Fail unless metrics are finite, percents lie within 0 to 100, and folds agree with them.

    Where selection is nested, each fold has the inner score that chooses for it.
    """
    metrics, main = evaluation.metrics, evaluation.main
    assert main in metrics, f"the main metric {main!r} is none of {', '.join(metrics)}"
    for name, value in metrics.items():
        assert math.isfinite(value), f"{name} is {value}"
    validation = evaluation.validation
    percent = validation is None or abs(validation) <= 100  # a correlation may be negative
    assert percent, f"validation is {validation}: give percent"
    assert evaluation.test_part in get_args(TestPart), f"test_part is {evaluation.test_part!r}"
    mean = sum(evaluation.folds) / max(1, len(evaluation.folds))
    agree = not evaluation.folds or math.isclose(mean, metrics[main], abs_tol=1e-6)
    assert agree, f"{main} is {metrics[main]}, but its folds have the mean {mean}"
    folds, inner = len(evaluation.folds), len(evaluation.inner)
    assert inner == (folds if nested else 0), (
        f"{folds} folds, {inner} inner scores: a nested recipe gives one for each fold, others none"
    )
    assert folds or not nested, "the recipe is nested, but there are no folds"


def data_hashes(domain: AnyDomain) -> tuple[str, str]:
    """Return the data hashes of a run that trains and of one that does not."""
    return domain.data_hash(trained=True), domain.data_hash(trained=False)


def contrast_tensors(contrasts: Sequence[Contrast]) -> list[Tensor]:
    values = [getattr(contrast, f.name) for contrast in contrasts for f in fields(contrast)]
    values += [view for contrast in contrasts for view in contrast.views or ()]
    return [value for value in values if isinstance(value, Tensor)]


def equal_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def differing_tensor(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> str | None:
    if one.keys() != other.keys():
        return min(one.keys() ^ other.keys())
    return next((name for name in one if not torch.equal(one[name], other[name])), None)
