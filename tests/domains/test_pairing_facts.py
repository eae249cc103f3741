"""What recipes say of their pairings, without torch, is what their contrasts are."""

from pathlib import Path

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.domain_laws import Subject, check_facts, first_contrasts
from contrastbench.benchmarks.running.opening import open_cells, with_loss
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec


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
    about = declaration(domain)
    work = Experiment(domain, about.default, LossSpec("infonce"), {**about.tiny, **recipe})
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
    about = declaration(domain)
    work = Experiment(domain, about.default, VICREG, {**about.tiny, **recipe})
    opened = open_cells(work, 0, Options(tmp_path))
    with pytest.raises(UserError, match="Vicreg takes two whole views of each sample, which this"):
        with_loss(opened)


@pytest.mark.parametrize("domain", ["graph", "image", "sentence", "tabular"])
def test_every_domain_pairs_two_views_by_default(domain: str) -> None:
    about = declaration(domain)
    work = Experiment(domain, about.default, VICREG, about.tiny)
    model, contrasts = first_contrasts(Subject(work), 0)
    loss = VICREG.make()
    assert loss is not None
    sum(loss(contrast) for contrast in contrasts).backward()
    assert any(p.grad is not None and p.grad.any() for p in model.parameters())
