"""Count the floating-point operations of a cell, on a real step on the CPU.

A step's operations do not depend on what the samples are, so they are counted on data that are
always there, a few samples at a time, and multiplied by the samples of the set that is meant.
Counted are products (of matrices, sparse ones by their entries, convolutions, attention), an
addition and a multiplication as two; not the views, optimizers, nor classifiers that are fitted.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains.recipe import Recipe
from contrastbench.domains.registry import declaration, domain_class
from contrastbench.losses.spec import get_loss

CPU = torch.device("cpu")
# keys of a recipe that change no operation that is counted
IDLE = {
    *("epochs", "score_at", "score_on", "lr", "weight_decay", "schedule", "optimizer", "momentum"),
    *("warmup", "ema", "probe", "probe_lr", "rate", "knn_temperature", "knn_k", "stem_init"),
    *("views", "min_scale", "flip", "blur", "jitter_strength", "asymmetric", "randaugment"),
}
FEW: dict[str, dict[str, Any]] = {  # samples that are alike: a few tell what many cost
    "image": {
        **{"batch_size": 2, "limit": 40, "chunk": None, "eval_every": None},
        **{"validation": 0.0, "whole_pictures": False},
    },
    "tabular": {"batch_size": 32},
    "graph": {},
}
STAND_INS = {"graph": "motifs", "tabular": "digits-table"}  # not the domains' defaults
NAMES = {"bert-base-uncased": "BertConfig", "roberta-base": "RobertaConfig"}  # as these are


class Parts(NamedTuple):
    """How many samples are trained on, fit a probe or choose the model, and are scored."""

    trained: int
    fitted: int
    scored: int


PARTS = {  # of the sets of papers' tables; graphs are all trained on and scored
    "CAR": Parts(8_054, 0, 8_131),
    "CIFAR-10": Parts(50_000, 50_000, 10_000),
    "CIFAR-100": Parts(50_000, 50_000, 10_000),
    "CUB": Parts(5_864, 0, 5_924),
    "CoverType": Parts(15_120, 15_120, 565_892),
    "Higgs-100K": Parts(100_000, 100_000, 500_000),
    "ImageNet": Parts(1_281_167, 1_281_167, 50_000),
    "ImageNet-100": Parts(126_689, 126_689, 5_000),
    "SOP": Parts(59_551, 0, 60_502),
    "STL-10": Parts(105_000, 5_000, 8_000),
    "Tiny-ImageNet": Parts(100_000, 100_000, 10_000),
    "sts": Parts(1_000_000, 3_000, 37_700),
}


class Sample(NamedTuple):
    """Operations of one sample: all of its views in a training step, and once embedded."""

    training: float
    embedding: float


class Operations(NamedTuple):
    """Operations of a cell, and the precision of its products."""

    training: float
    evaluation: float
    step: float
    precision: str

    @property
    def all(self) -> float:
        return self.training + self.evaluation


def operations(experiment: Experiment) -> Operations | None:
    """The operations of one seed; None where the size of the set or the encoder is not known."""
    recipe, whole = experiment.full_recipe, parts_of(experiment)
    sample = sample_of(experiment.domain, experiment.dataset, recipe) if whole else None
    if whole is None or sample is None:
        return None
    parts = thinned(whole, experiment.domain, getattr(recipe, "limit", None))
    seen = recipe.epochs * parts.trained if experiment.trained else 0
    passes = parts.scored + parts.fitted * (1 + int(recipe.evaluation.get("probe epochs", 0)))
    if seen and recipe.validate_every:
        passes += parts.fitted * (seen // (recipe.batch_size * recipe.validate_every))
    precision = getattr(recipe, "precision", "float32")
    step = recipe.batch_size * sample.training
    return Operations(seen * sample.training, passes * sample.embedding, step, precision)


def parts_of(experiment: Experiment) -> Parts | None:
    """Return the number of samples in the parts of the experiment's set, where they are known."""
    declared = declaration(experiment.domain).datasets.get(experiment.dataset)
    if experiment.domain == "graph" and declared and declared.sizes:
        return Parts(declared.sizes[0], 0, declared.sizes[0])
    return PARTS.get(experiment.dataset)


def thinned(parts: Parts, domain: str, limit: int | None) -> Parts:
    """Return the sizes of the parts that a recipe's limit leaves at least.

    >>> thinned(Parts(600, 600, 200), "tabular", 80)
    Parts(trained=60, fitted=60, scored=20)
    """
    samples = parts.scored if domain == "graph" else parts.trained + parts.scored
    share = 1.0 if limit is None else min(1.0, limit / samples)
    return Parts(*(int(part * share) for part in parts))


def sample_of(domain: str, dataset: str, recipe: Recipe) -> Sample | None:
    """The operations of a sample of a set."""
    values = recipe.model_dump_json(exclude=IDLE)
    if domain == "sentence":
        return encoder_sample(recipe.encoder, recipe.max_length)  # type: ignore[attr-defined]
    if domain not in FEW:
        return None
    sample = stand_in(domain, type(recipe), values)
    if domain != "graph":
        return sample
    graphs, nodes, *_ = (*declaration(domain).datasets[dataset].sizes, 0, 0)
    if not nodes:
        return None
    larger = nodes / graphs / nodes_of_stand_in()
    return Sample(sample.training * larger, sample.embedding * larger)


@cache
def stand_in(domain: str, kind: type[Recipe], values: str) -> Sample:
    """Operations of a sample of the domain's embedded set by this recipe, with InfoNCE's pairs."""
    recipe = kind.model_validate_json(values).model_copy(update=FEW[domain])
    if recipe.pairs_by_class:
        recipe = recipe.model_copy(update=few_by_class(recipe))
    if drawn := getattr(recipe, "pretrained", ""):  # weights of any value cost the same
        recipe = recipe.model_copy(update={"encoder": drawn})
    dataset = STAND_INS.get(domain, declaration(domain).default)
    adapter: Any = domain_class(domain)(dataset, recipe, 0, None, CPU)
    model, loss = adapter.model(), get_loss("infonce")
    batch = next(iter(adapter.batches(0)))

    def step() -> None:
        contrasts = adapter.contrasts(model, batch)
        torch.stack([loss(contrast) for contrast in contrasts]).sum().backward()

    training = counted(step) / recipe.batch_size if recipe.trainable else 0.0
    embedded: list[Any] = []
    forward = counted(lambda: embedded.append(adapter.embeddings(model)))
    return Sample(training, forward / len(embedded[0].y))


def few_by_class(recipe: Any) -> dict[str, Any]:
    """Return settings under which a batch of a few images has negatives.

    Two images may be of one class, which leaves no negatives; a balanced batch has two classes and
    sees each image once, other pairings see it twice.
    """
    if recipe.pairing == "balanced":
        return {"batch_size": 2 * (1 + recipe.positives)}
    return {"pairing": "both_views"}


@cache
def nodes_of_stand_in() -> float:
    recipe = declaration("graph").recipe()
    adapter: Any = domain_class("graph")(STAND_INS["graph"], recipe, 0, None, CPU)
    return len(adapter.graphs.x) / len(adapter.graphs)


@cache
def encoder_sample(encoder: str, length: int) -> Sample | None:
    """Operations of a sentence, as if each had the longest length, by shapes alone."""
    import transformers

    if encoder not in NAMES:
        return None
    config = getattr(transformers, NAMES[encoder])()
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
        tokens = torch.zeros(1, length, dtype=torch.long)
        forward = counted(lambda: model(tokens))
        both = counted(lambda: model(tokens).last_hidden_state.sum().backward())
    return Sample(2 * both, forward)


def counted(work: Callable[[], Any]) -> float:
    """The operations that some work takes."""
    with FlopCounterMode(display=False, custom_mapping=PRODUCTS) as counter:
        work()
    return float(counter.get_total_flops())


def product(one: Tensor, other: Tensor, *_: Any, **__: Any) -> int:
    """Count the operations of a matrix product; a sparse one counts its stored entries."""
    if other.layout != torch.strided:
        return 2 * one.shape[0] * int(other._nnz())
    entries = one.numel() if one.layout == torch.strided else int(one._nnz())
    return 2 * entries * other.shape[1]


def sum_and_product(_: Tensor, one: Tensor, other: Tensor, *__: Any, **___: Any) -> int:
    return product(one, other)


for formula in (product, sum_and_product):
    formula._get_raw = True  # type: ignore[union-attr] # tensors, not their shapes
PRODUCTS = {torch.ops.aten.mm: product, torch.ops.aten.addmm: sum_and_product}
