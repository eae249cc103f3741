"""Trainings to be killed: a small one of each domain, with a checkpoint after every step.

A module of its own, so that processes can be started with it, see forked.py.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch

from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.benchmarks.running import devices, training
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.signals import end_on_sigterm
from contrastbench.domains.graph import generated
from contrastbench.domains.image.data import digits
from contrastbench.domains.registry import domain_class
from contrastbench.domains.scoring import linear, logistic, svm
from contrastbench.losses.spec import LossSpec
from forked import disk_takes
from resumed import few_sentences

SMALL = {"limit": 36, "batch_size": 12, "epochs": 2}
RECIPES: dict[str, dict[str, Any]] = {
    "graph": {"folds": 2, "hidden": 8, "layers": 2},
    "image": {"width": 0.0625, "projection": (16, 8), "limit": 24},
    "sentence": {"eval_every": 4, "max_length": 8},
    "tabular": {"limit": 60, "probe": "pseudo_inverse"},
}


def experiment(domain: str) -> Experiment:
    dataset = "motifs" if domain == "graph" else None  # its few classes fill two folds
    loss, recipe = LossSpec("adnce", {"mu": 0.6}), {**SMALL, **RECIPES[domain]}
    return make_experiment(domain, dataset, loss, recipe, tiny=True)


@few_sentences()
def train(domain: str, results: str) -> None:
    """Until the record is there, or SIGTERM comes."""
    end_on_sigterm()
    run_cell(experiment(domain), 1, Options(Path(results), device="cpu"))


def prepare() -> None:
    """Imports, and what no life changes; few and short trials of scorers, and a slow disk."""
    training.SECONDS_BETWEEN_CHECKPOINTS = -1
    svm.C_GRID, svm.INNER_FOLDS = (1.0,), 2
    logistic.C_GRID, linear.EPOCHS = (1.0,), 2
    for module, name in (
        (devices, "installed"),
        *((generated, "motif_graphs"), (digits, "load_digits")),
    ):
        setattr(module, name, cache(getattr(module, name)))
    devices.environment(torch.device("cpu"))
    generated.motif_graphs()
    digits.load_digits()
    with few_sentences():
        for domain in RECIPES:
            domain_class(domain)
            experiment(domain).loss.check()
    disk_takes(0.002)
