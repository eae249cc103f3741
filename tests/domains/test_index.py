"""Every domain tells of which training sample each anchor is."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from contrastbench.benchmarks.running.domain_laws import check_index
from contrastbench.domains.registry import declaration, domain_class, make_recipe

LIMIT = {"limit": 40, "batch_size": 8}


def opened(name: str, **recipe: Any) -> Any:
    about = declaration(name)
    dataset = "motifs" if name == "graph" else about.default
    values = make_recipe(name, {**about.tiny, **LIMIT, **recipe})
    return domain_class(name)(dataset, values, 0, None, torch.device("cpu"))


def test_the_index_of_a_row_finds_it() -> None:
    domain = opened("tabular", views="none", pretraining="train+validation")
    for batch in domain.batches(1):
        (contrast, _) = domain.contrasts(domain.model(), batch)
        assert torch.equal(domain.pretraining.x[contrast.index], domain.views(batch)[0])


def test_the_index_of_a_graph_finds_it() -> None:
    domain = opened("graph")
    for batch in domain.batches(1):
        (contrast,) = domain.contrasts(domain.model(), batch)
        sizes = domain.graphs.node_ptr.diff()[contrast.index]
        assert torch.equal(sizes, batch.graphs.node_ptr.diff())


def test_the_index_of_a_sentence_finds_it() -> None:
    domain = opened("sentence")
    batch = next(iter(domain.batches(1)))
    (contrast,) = domain.contrasts(domain.model(), batch)
    assert [domain.corpus.rows[row][0] for row in contrast.index.tolist()] == batch.sentences


def test_the_index_of_an_image_finds_it() -> None:
    domain = opened("image", pairing="own_view")
    batch = next(iter(domain.batches(1)))
    for contrast in domain.contrasts(domain.model(), batch):
        labels = domain.splits["train"].labels[contrast.index]
        assert torch.equal(labels, domain.pool.labels[batch.rows])


def test_a_wrong_index_breaks_the_law() -> None:
    domain = opened("tabular", pairing="both_views")
    (contrast,) = domain.contrasts(domain.model(), next(iter(domain.batches(0))))
    check_index(contrast, domain)
    for index, message in (
        (None, "a contrast no index"),
        (contrast.index + domain.sample_count, "index is none of"),
        (torch.zeros_like(contrast.index), "a sample has two ids"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_index(replace(contrast, index=index), domain)
