"""The set that a domain trains on by default: training gains there, and counting shows nothing."""

from functools import cache
from typing import Any

import pytest

from contrastbench.benchmarks.running.training import train
from contrastbench.losses import get_loss
from opened import opened

RECIPES: dict[str, dict[str, Any]] = {  # of seconds
    "graph": {"epochs": 5, "folds": 3},
    "image": {"encoder": "convnet", "epochs": 8, "probe": "quick"},
    "sentence": {"epochs": 3, "limit": 1024, "schedule": "constant", "eval_every": 16},
    "tabular": {"epochs": 6},
}
MARGIN = 10  # points that training gains over the untrained encoder and over its inputs, at least


def small(domain: str, **recipe: Any) -> Any:
    return opened(domain, **{**RECIPES[domain], **recipe})


def score(domain: Any, model: Any) -> float:
    found = domain.evaluate(model)
    return found.metrics[found.main]


@cache
def untrained(domain: str, **recipe: Any) -> float:
    one = small(domain, **recipe)
    return score(one, one.model())


@pytest.mark.parametrize("domain", RECIPES)
def test_training_gains(domain: str) -> None:
    one, inputs = small(domain), {} if domain == "sentence" else {"encoder": "raw"}
    model, _ = train(one, get_loss("adnce", temperature=0.1))
    assert score(one, model) > max(untrained(domain), untrained(domain, **inputs)) + MARGIN


@pytest.mark.parametrize("encoder", ["raw", "sizes"])
def test_a_count_of_graphs_is_at_chance(encoder: str) -> None:
    assert untrained("graph", encoder=encoder) < 100 / 6 + 1


def test_an_untrained_encoder_of_rows_is_better_than_their_columns() -> None:
    assert untrained("tabular") > untrained("tabular", encoder="raw") + 5


@pytest.mark.parametrize(
    ("domain", "dataset", "digest"),
    [
        ("graph", "label-pairs", "1e786beba9a2c4d7"),
        ("graph", "motifs", "e5e73cd39b13100f"),
        ("image", "shifted-digits", "bfef15728b82cb1c"),
        ("sentence", "graded", "5d835398d6a732fb"),
    ],
)
def test_generated_samples_stay_as_records_have_them(
    domain: str, dataset: str, digest: str
) -> None:
    assert opened(domain, dataset).data_hash(trained=True)[:16] == digest
