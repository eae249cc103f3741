"""What recipes say of pairings, without torch, is what their contrasts are; so is an index."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from contrastbench.benchmarks.checks.domain import (
    Subject,
    check_facts,
    check_index,
    first_contrasts,
)
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.opening import open_cells, with_loss
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.registry import DOMAINS
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec
from opened import tiny


@pytest.mark.parametrize(
    ("domain", "recipe"),
    [
        ("graph", {"pairing": "part_of"}),
        ("graph", {"pairing": "whole_of"}),
        *((name, {"pairing": "own_view"}) for name in DOMAINS),
        ("image", {"positives": 1}),
        ("image", {"positives": 2}),
        ("image", {"pairing": "query_key"}),
        ("image", {"pairing": "both_ways"}),
        ("image", {"pairing": "supervised"}),
        ("sentence", {"pairing": "query_key"}),
        ("tabular", {"pairing": "both_views"}),
        ("tabular", {"pairing": "one_way"}),
    ],
)
def test_contrasts_are_as_recipes_say(domain: str, recipe: dict) -> None:
    """The default pairings are held to that by the laws of domains."""
    work = make_experiment(domain, None, LossSpec("infonce"), recipe, tiny=True)
    for contrast in first_contrasts(Subject(work), 0)[1]:
        check_facts(contrast, work.full_recipe.pairing_facts)


VICREG = LossSpec("packaged_losses:Vicreg")


@pytest.mark.parametrize(
    ("domain", "recipe"),
    [
        ("graph", {"pairing": "part_of"}),
        ("graph", {"pairing": "whole_of"}),
        ("graph", {"pairing": "supervised"}),
        ("image", {"positives": 1}),
        ("image", {"pairing": "query_key", "local_crops": 1, "local_size": 8}),
        ("tabular", {"pairing": "supervised"}),
    ],
)
def test_a_loss_of_views_is_refused_before_the_training(
    domain: str, recipe: dict, tmp_path: Path
) -> None:
    work = make_experiment(domain, None, VICREG, recipe, tiny=True)
    opened = open_cells(work, 0, Options(tmp_path))
    with pytest.raises(UserError, match="Vicreg takes two whole views of each sample, which this"):
        with_loss(opened)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_pairs_two_views_by_default(domain: str) -> None:
    work = make_experiment(domain, None, VICREG, {}, tiny=True)
    model, contrasts = first_contrasts(Subject(work), 0)
    loss = VICREG.make()
    assert loss is not None
    sum(loss(contrast) for contrast in contrasts).backward()
    assert any(p.grad is not None and p.grad.any() for p in model.parameters())


LIMIT = {"limit": 40, "batch_size": 8}


small = partial(tiny, **LIMIT)


def test_the_index_of_a_row_finds_it() -> None:
    domain = small("tabular", views="none", pretraining="train+validation")
    for batch in domain.batches(1):
        (contrast, _) = domain.contrasts(domain.model(), batch)
        assert torch.equal(domain.pretraining.x[contrast.index], domain.views(batch)[0])


def test_the_index_of_a_graph_finds_it() -> None:
    domain = small("graph")
    for batch in domain.batches(1):
        (contrast,) = domain.contrasts(domain.model(), batch)
        sizes = domain.graphs.node_ptr.diff()[contrast.index]
        assert torch.equal(sizes, batch.graphs.node_ptr.diff())


def test_the_index_of_a_sentence_finds_it() -> None:
    domain = small("sentence")
    batch = next(iter(domain.batches(1)))
    (contrast,) = domain.contrasts(domain.model(), batch)
    assert [domain.corpus.rows[row][0] for row in contrast.index.tolist()] == batch.sentences


def test_the_index_of_an_image_finds_it() -> None:
    domain = small("image", pairing="own_view")
    batch = next(iter(domain.batches(1)))
    for contrast in domain.contrasts(domain.model(), batch):
        labels = domain.splits["train"].labels[contrast.index]
        assert torch.equal(labels, domain.pool.labels[batch.rows])


def test_a_wrong_index_breaks_the_law() -> None:
    domain = small("tabular", pairing="both_views")
    (contrast,) = domain.contrasts(domain.model(), next(iter(domain.batches(0))))
    check_index(contrast, domain)
    for index, message in (
        (None, "a contrast no index"),
        (contrast.index + domain.sample_count, "index is none of"),
        (torch.zeros_like(contrast.index), "a sample has two ids"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_index(replace(contrast, index=index), domain)
