"""Losses that keep numbers of each training sample: trained, saved, recorded and refused."""

from pathlib import Path

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.running.opening import loss_on_device
from contrastbench.benchmarks.running.publishing import learned_details
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.registry import DOMAINS, declaration, domain_class, make_recipe
from contrastbench.losses import UserError, get_loss

TINY = {"epochs": 2, "limit": 40, "batch_size": 8}


def opened(name: str, **recipe: object):
    about = declaration(name)
    dataset = "motifs" if name == "graph" else about.default
    values = make_recipe(name, {**about.tiny, **TINY, **recipe})
    return domain_class(name)(dataset, values, 0, None, torch.device("cpu"))


@pytest.mark.parametrize("name", DOMAINS)
def test_it_is_prepared_with_the_samples_of_the_domain(name: str) -> None:
    domain = opened(name)
    loss = loss_on_device(get_loss("infonce + isogclr"), domain)
    train(domain, loss)
    _, isogclr = loss.losses
    assert len(isogclr.temperatures) == domain.sample_count
    met = isogclr.log_u.isfinite()
    assert met.sum() > domain.sample_count - 8
    assert isogclr.temperatures[met].unique().numel() > met.sum() / 2
    mean = isogclr.temperatures[met].mean().item()
    assert learned_details(loss) == {"learned": {"isogclr.mean_temperature": mean}}


def test_a_domain_that_does_not_number_its_samples_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_domain.install(monkeypatch)
    with pytest.raises(UserError, match="and Stub does not number them: write its sample_count"):
        stub_domain.cell(tmp_path, "sogclr")


@pytest.mark.parametrize(("pairing", "lines"), [("own_view", 0), ("both_views", 1)])
def test_a_loss_of_the_own_view_says_where_it_is_not_its_papers(
    pairing: str, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    domain = opened("tabular", pairing=pairing)
    capsys.readouterr()
    loss_on_device(get_loss("infonce + dhel"), domain)
    said = capsys.readouterr().err
    assert said.count("give --recipe pairing=own_view") == lines
