"""Every domain on the shadow device: the CPU's numbers, no operand left behind, no wait."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import senteval
from compiled import refuse, weights, with_loss
from contrastbench.benchmarks.checks.domain import interrupt
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running import compiling
from contrastbench.benchmarks.running.history import History
from contrastbench.benchmarks.running.training import AnyDomain, Look, train
from contrastbench.domains import exported
from contrastbench.domains.base import Evaluation
from contrastbench.domains.image.recipe import PROBES
from contrastbench.domains.registry import declaration
from contrastbench.domains.scoring import linear
from contrastbench.domains.sentence import encoder as encoders
from contrastbench.domains.sentence import transfer
from contrastbench.losses import LossSpec
from contrastbench.losses.base import Loss
from resumed import few_sentences
from shadow import Counts, counting, shadow

SHADOW, CPU = shadow(), torch.device("cpu")  # before any backward pass, which settles the devices
LEARNED = Path(__file__).parents[2] / "losses" / "learned.py"
TINY: dict[str, dict[str, Any]] = {  # on top of each domain's tiny recipe
    "graph": {"batch_size": 16},
    "image": {"limit": 130},
    "sentence": {"limit": 48, "batch_size": 16},
    "tabular": {"limit": 200, "batch_size": 16, "epochs": 1, "widths": (8, 8)},
}


@pytest.fixture(autouse=True)
def one_way_to_compute(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU alone has attention in one operation, and linear layers of oneDNN for inference."""
    monkeypatch.setattr(encoders, "for_inference", lambda model, device: model.eval())
    with sdpa_kernel(SDPBackend.MATH), few_sentences():
        yield


@dataclass(frozen=True)
class Trained:
    weights: Mapping[str, Tensor]
    history: History
    evaluation: Evaluation | None


def opened(
    domain: str,
    loss: str,
    recipe: Mapping[str, Any],
    device: torch.device,
    dataset: str | None = None,
    data_root: Path | None = None,
) -> tuple[AnyDomain, Loss]:
    values = {**TINY[domain], **recipe}
    work = make_experiment(domain, dataset, LossSpec(loss), values, tiny=True)
    return with_loss(work, device, data_root)


def trained(
    domain: str,
    loss: str,
    recipe: Mapping[str, Any],
    device: torch.device,
    checkpoint: Path | None = None,
    look: Look | None = None,
    evaluate: bool = True,
) -> Trained:
    ready, made = opened(domain, loss, recipe, device)
    model, history = train(ready, made, checkpoint, look=look)
    assert {x.device.type for x in model.parameters()} == {device.type}
    found = ready.evaluate(model) if evaluate else None
    return Trained(weights(model, made), history, found)


def assert_same(ours: Trained, theirs: Trained) -> None:
    assert ours.history == theirs.history
    assert ours.evaluation == theirs.evaluation
    assert ours.weights.keys() == theirs.weights.keys()
    for name, weight in theirs.weights.items():
        assert torch.equal(ours.weights[name], weight), name


TRAININGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "graph": ("graph", "infonce", {}),
    "graph, degrees": ("graph", "rmlcpc", {"augmentation": "random4", "features": "degree"}),
    "sentence": ("sentence", "adnce", {"eval_every": 2}),
    "sentence, sum": ("sentence", "infonce + 0.5*mean_variance", {"pooler": "cls"}),
    "tabular": ("tabular", "renyi", {"optimizer": "sgd"}),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_cell_ends_in_the_bits_of_the_cpu(name: str) -> None:
    domain, loss, recipe = TRAININGS[name]
    theirs = trained(domain, loss, recipe, CPU)
    with counting() as counts:
        assert_same(trained(domain, loss, recipe, SHADOW), theirs)
    assert counts.launches > 100


OTHERWISE: dict[str, tuple[str, str, dict[str, Any], float]] = {
    # views of a step are drawn as one batch there: other images of the same kind
    "image, MoCo": (
        "image",
        "infonce",
        {"pairing": "query_key", "optimizer": "lars", "validation": 0.2, "eval_every": 1},
        0.1,
    ),
    "image, bf16": (
        "image",
        "attentionnce",
        {"positives": 1, "precision": "bf16", "blur": 0.5},
        0.1,
    ),
    "image, learned proxies": (
        "image",
        f"{LEARNED}:Proxy",
        {"pairing": "supervised", "projection": (16, 8)},
        0.1,
    ),
    "image, hard": ("image", "infonce", {"views": "hard"}, 0.1),
    # dropout is one operation, which rounds once
    "sentence, bf16": ("sentence", "infonce", {"pooler": "cls", "precision": "bf16"}, 1e-3),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_an_accelerator_computes_otherwise_is_near_the_cpu(name: str) -> None:
    *case, tolerance = OTHERWISE[name]
    ours, theirs = (trained(*case, device, evaluate=False) for device in (SHADOW, CPU))
    losses = ours.history.loss_by_epoch, theirs.history.loss_by_epoch
    assert losses[0] == pytest.approx(losses[1], rel=tolerance)
    assert ours.weights.keys() == theirs.weights.keys()


@pytest.mark.parametrize(
    ("name", "first", "then"), [("graph", CPU, SHADOW), ("tabular", SHADOW, CPU)]
)
def test_a_checkpoint_of_one_device_goes_on_on_the_other(
    name: str, first: torch.device, then: torch.device, tmp_path: Path
) -> None:
    case, path = TRAININGS[name], tmp_path / "training.safetensors"
    with suppress(KeyboardInterrupt):
        trained(*case, first, path, interrupt(2))
    assert path.exists()
    with counting() as counts:
        resumed = trained(*case, then, path, evaluate=False)
    assert (counts.launches > 0) == (then == SHADOW)
    assert_same(resumed, trained(*case, CPU, evaluate=False))


# Scores


@pytest.mark.parametrize("probe", ["plain", "pseudo_inverse", "logistic", "boosting", "linear"])
def test_classifiers_of_tables_score_as_on_the_cpu(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "EPOCHS", 3)
    ours, theirs = (scored("tabular", {"probe": probe}, device) for device in (SHADOW, CPU))
    assert ours == theirs


@pytest.mark.parametrize("probe", PROBES)
def test_classifiers_of_images_score_as_on_the_cpu(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(PROBES[probe], epochs=2, batch=48)
    monkeypatch.setitem(PROBES, probe, short)
    recipe = {"probe": probe, "validation": 0.2, "test_size": 12}
    ours, theirs = (scored("image", recipe, device) for device in (SHADOW, CPU))
    assert ours == theirs


def scored(
    domain: str,
    recipe: Mapping[str, Any],
    device: torch.device,
    dataset: str | None = None,
    data_root: Path | None = None,
) -> Evaluation:
    ready, _ = opened(domain, "infonce", recipe, device, dataset, data_root)
    return ready.evaluate(ready.model())


def test_transfer_tasks_score_as_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_sets: None
) -> None:
    monkeypatch.setattr(transfer, "FOLDS", 2)
    senteval.make(tmp_path, [])
    ours, theirs = (
        scored("sentence", {"limit": 8}, device, "transfer", tmp_path) for device in (SHADOW, CPU)
    )
    assert ours == theirs


def test_an_exported_encoder_has_the_bytes_of_the_cpus(tmp_path: Path) -> None:
    for device in (SHADOW, CPU):
        ready, _ = opened("sentence", "infonce", {"pooler": "cls"}, device)
        ready.export(ready.model(), tmp_path / device.type)
    ours, theirs = (contents(tmp_path / device.type) for device in (SHADOW, CPU))
    assert len(theirs) > 5
    assert ours == theirs


@pytest.mark.parametrize("domain", TINY)
def test_an_exported_encoder_embeds_on_the_device(domain: str, tmp_path: Path) -> None:
    ready, _ = opened(domain, "infonce", {}, CPU)
    ready.export(ready.model(), tmp_path / "encoder")
    pictures, found = torch.randint(256, (3, 8, 8, 3), dtype=torch.uint8), []
    given = {"image": pictures, "sentence": ["kaba", "babace ban"]}
    for device in (SHADOW, CPU):
        encoder = exported.open_encoder(str(tmp_path / "encoder"), domain, None, device)
        read = () if domain in given else encoder.read(declaration(domain).default, None).data
        found.append(encoder.embed(given.get(domain, read)))
    ours, theirs = found
    assert (ours.device, ours.dtype) == (CPU, torch.float32)
    assert torch.equal(ours, theirs)


def contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


# What a step asks for


LONG: dict[str, dict[str, Any]] = {  # epochs of several steps, none of which validates
    "graph": {"batch_size": 16},
    "image": {},
    "sentence": {"eval_every": 100},
    "tabular": {"batch_size": 32},
}
STEPS = [
    pytest.param("graph", {"pairing": "supervised"}, 0, id="graph, by class"),
    pytest.param("image", {"views": "hard"}, 2, id="image, hard"),
    pytest.param("image", {"pairing": "query_key"}, 0, id="image, MoCo"),
    pytest.param("image", {"pairing": "supervised"}, 0, id="image, by class"),
    pytest.param("sentence", {}, 1, id="sentence"),
    pytest.param("tabular", {"batch_size": 16, "pairing": "supervised"}, 0, id="tabular, by class"),
    pytest.param("tabular", {"views": "masking+corruption"}, 0, id="tabular, both"),
]


def steps_asked(domain: AnyDomain, loss: Loss, compiled: Sequence[str] = ()) -> list[Counts]:
    """Return the counts from each step's loss to the next one's.

    The last step of an epoch has the end of that epoch and the beginning of the next with it.
    """
    seen: list[Counts] = []

    def note(contrasts: Any, batch: Any) -> Any:
        seen.append(copy.deepcopy(counts))
        return contrasts

    with counting() as counts:
        train(domain, loss, look=note, compiled=compiled)
    return [after - before for before, after in pairwise(seen)]


@pytest.mark.parametrize(("domain", "recipe", "copies"), STEPS)
def test_no_step_waits_for_the_device(domain: str, recipe: dict[str, Any], copies: int) -> None:
    """A step copies a sentence's token ids and mask, and the operations of RandAugment."""
    recipe = {"epochs": 2, **LONG[domain], **recipe}
    ready, loss = opened(domain, "infonce", recipe, SHADOW)
    steps, last = steps_asked(ready, loss), ready.steps() - 1
    assert last > 1
    within = [step for number, step in enumerate(steps) if number % (last + 1) != last]
    for step in within:
        assert (step.host_reads, step.copies) == (0, copies), (step.read_at, step.copied_at)
        # graphs differ, and so does what is copied; all else takes memory of the first step's sizes
        assert domain == "graph" or copies or step.sizes.keys() <= within[0].sizes.keys()


def test_an_epoch_asks_the_device_once_for_each_chunk_of_graphs() -> None:
    """An epoch reads from the device equally often for two batches and for four."""
    reads = []
    for batch in (15, 30):
        ready, loss = opened("graph", "infonce", {"batch_size": batch, "epochs": 2}, SHADOW)
        steps = steps_asked(ready, loss)
        reads.append(steps[ready.steps() - 1].host_reads)
    assert reads[0] == reads[1] > 0


def test_padded_sentences_take_the_memory_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a CUDA graph needs: no step reads from the device, or takes memory of a new size."""
    monkeypatch.setattr(compiling, "capture", refuse)
    monkeypatch.setattr(compiling, "beside", lambda work: work())
    recipe = {"batch_size": 2, "epochs": 1, "eval_every": 100}
    steps = steps_asked(*opened("sentence", "infonce", recipe, SHADOW), [compiling.STEP])[1:]
    assert len(steps) == 22
    assert all((step.host_reads, step.copies) == (0, 1) for step in steps)
    assert all(step.sizes.keys() == steps[0].sizes.keys() for step in steps)
