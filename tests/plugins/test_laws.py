"""The laws of domains hold for ours, and each names the fault that it is about."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from contrastbench.benchmarks.checks.domain import CHECKS, check_domain, contrasts_of
from contrastbench.domains.registry import DOMAINS
from contrastbench.losses import both_views

FAULTS = {  # of a broken domain: the check that fails, and what it says
    "downloaded": ("declaration", "the default 'tones' is downloaded: embed a small dataset"),
    "seedless": ("model", "all seeds give one model"),
    "one_step_of_global_draws": (
        "batches",
        "epoch 1 is not the same when asked for in another order",
    ),
    "global_dropout": ("contrasts", "a batch gives two contrasts: draw from a generator or seed"),
    "global_draws": ("batches", "epoch 1 is not the same when asked for in another order"),
    "epochs_in_order": ("batches", "epoch 1 is not the same when asked for in another order"),
    "wrong_steps": ("steps", "steps() is 3, but epoch 0 has 4 batches"),
    "long_rows": ("contrasts", "anchor has rows that are 1 off length one: make contrasts by a pa"),
    "wrong_facts": (
        "contrasts",
        "the recipe says Pairing(positive_in_denominator=False, one_posit",
    ),
    "stray_draws": ("contrasts", "a batch gives two contrasts: draw from a generator or seed that"),
    "hidden_state": (
        "resume",
        "encoder.1.weight differs after an interruption at step 1",
    ),
    "hash_of_a_draw": (
        "data hash",
        "two openings give two data hashes",
    ),
    "hash_by_md5": ("data hash", "data_hash gives '"),
    "one_hash": ("data hash", "chirps and tones have one data hash"),
    "hash_of_use": ("data hash", "data_hash changes as the domain is used"),
    "trains_on": ("evaluation", "evaluate changes encoder.2.running_mean: score in eval mode, and"),
    "scores_by_chance": (
        "evaluation",
        "a model has two scores: key all draws of the scoring by th",
    ),
    "folds_without_inner": (
        "evaluation",
        "2 folds, 1 inner scores: a nested recipe gives one for each fold, others none",
    ),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_ours_are_lawful(name: str) -> None:
    results = check_domain(name)
    assert [result for result in results if not result.passed] == []
    assert len(results) == len(CHECKS)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_check_that_is_about_it(name: str, install) -> None:
    install("broken", f"{name} = broken_domains:{name}")
    failed = [result for result in check_domain(name) if not result.passed]
    check, message = FAULTS[name]
    assert [result.name for result in failed] == [check], failed
    assert failed[0].detail.startswith(message)
    assert "\n" not in failed[0].detail
    assert failed[0].remedy or ":" in failed[0].detail or check == "steps"


def test_one_contrast_is_no_list() -> None:
    one = SimpleNamespace(contrasts=lambda model, batch: both_views(torch.eye(2), torch.eye(2)))
    with pytest.raises(AssertionError, match=r"gives one Contrast: give a list of them"):
        contrasts_of(one, nn.Identity(), None)
