"""What each of several processes does in benchmarks/running/test_ranks.py: short trainings."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.base import Validates
from contrastbench.domains.graph.data import Graphs
from contrastbench.domains.graph.encoder import InfoGraph
from opened import tiny
from resumed import SCHEDULED, few_sentences, made

FILE = Path(__file__).parents[1] / "losses" / "learned.py"
GRAPHS = {"limit": 42, "batch_size": 20, "folds": 3, "optimizer": "sgd", "lr": 1e-3}
SMALL = {"size": 8, "limit": 31, "batch_size": 14, "optimizer": "sgd", "lr": 0.05}
MULTI_CROP = {"pairing": "query_key", "local_crops": 2, "local_size": 8, "projection_norm": True}
TABLE = {"limit": 60, "batch_size": 21, "lr": 0.05, "widths": (16, 32), "projection": (16, 8)}
# Batches that neither two nor four processes divide; a last one smaller than four. Adam divides a
# gradient that is nothing but rounding errors by its own size, so that all equality ends.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "graphs": ("graph", "adnce", {**GRAPHS, "limit": 63, "score_at": [1]}),
    "graphs, a sum": ("graph", "infonce + 0.5*dar", {**GRAPHS, "features": "degree"}),
    "graphs, a learned temperature": ("graph", f"{FILE}:Temperature", GRAPHS),
    "graphs, schedules": ("graph", SCHEDULED, GRAPHS),
    "graphs, nodes": ("graph", "jsd", {**GRAPHS, "pairing": "part_of"}),
    "nodes, graphs": ("graph", "jsd", {**GRAPHS, "pairing": "whole_of"}),
    "a table, momentum": ("tabular", "rmlcpc", TABLE),
    "a table, both views": ("tabular", "phi_dro", {**TABLE, "pairing": "both_views"}),
    "a table, memory": ("tabular", "isogclr + sogclr", {**TABLE, "pairing": "own_view"}),
    "images, chosen": ("image", "infonce", {**SMALL, "eval_every": 3, "validation": 0.2}),
    "images, multi-crop": ("image", "mlcpc", {**SMALL, **MULTI_CROP}),
    "images, positives": ("image", "attentionnce", {**SMALL, "positives": 2, "batch_size": 15}),
    "images, by class": (
        "image",
        "hcl",
        {**SMALL, "pairing": "supervised", "views": "hard", "blur": 0.5},
    ),
    "sentences": (
        "sentence",
        "adnce",
        {"limit": 22, "batch_size": 10, "eval_every": 4, "optimizer": "sgd", "lr": 0.05},
    ),
}
Outcome = dict[str, Any]


@few_sentences()
def trainings(*names: str) -> dict[str, Outcome]:
    """Losses and metrics of the cases, and weights after them, in float64."""
    return {name: training(*CASES[name]) for name in names}


def training(name: str, loss: str, values: dict[str, Any]) -> Outcome:
    # motifs: rings have one degree for all nodes, so weights of degrees would be rounding alone
    domain = tiny(name, **{"epochs": 2} | values)
    make, evaluate = domain.model, domain.evaluate
    domain.model = lambda: in_float64(make())  # type: ignore[method-assign]
    domain.evaluate = lambda model: evaluate(in_float32(model))  # type: ignore[method-assign]
    if isinstance(domain, Validates):
        validate = domain.validate
        domain.validate = lambda model: validate(in_float32(model))  # type: ignore[method-assign]
    model, history = train(domain, made(loss).double())
    scores = {"losses": history.loss_by_epoch, "validation": [s for _, s in history.dev_curve]}
    scores |= {**domain.evaluate(model).metrics, **history.metrics}
    if name != "graph":
        # these networks hardly tell samples apart, so classifiers of 32 bits fit scores that are
        # equal but for rounding, in whose order the area steps; an SVM's have 64 bits
        scores.pop("auroc", None)
    return {"scores": scores, "weights": model.state_dict()}


def in_float64(model: nn.Module) -> nn.Module:
    """The model with weights, products and statistics of 64 bits."""
    for part in network_parts(model):
        part.register_forward_pre_hook(lambda _, inputs: tuple(map(widened, inputs)))
    return model.double()


def in_float32(model: nn.Module) -> nn.Module:
    """A copy with weights of 32 bits, as classifiers like it."""
    model = copy.deepcopy(model)
    for part in network_parts(model):
        part._forward_pre_hooks.clear()
    return model.float()


def network_parts(model: nn.Module) -> list[nn.Module]:
    if isinstance(model, InfoGraph):
        return [model]
    return [part for name, part in model.named_children() if name in ("encoder", "target")]


def widened(x: Any) -> Any:
    """Numbers of 64 bits."""
    if isinstance(x, Graphs):
        return replace(x, x=x.x.double())
    return x.double() if isinstance(x, Tensor) and x.is_floating_point() else x
