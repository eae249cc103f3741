"""Domains by name: ours, and those that packages announce."""

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli import listing
from contrastbench.benchmarks.records.store import read
from contrastbench.benchmarks.running.runner import Request, run
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables import sweep_file
from contrastbench.domains import registry
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.losses import UserError

PACKAGE = """
import torch
from contrastbench.domains.base import Evaluation, generator
from contrastbench.domains.recipe import Recipe
from contrastbench.losses import both_views


class PointRecipe(Recipe):
    noise: float = 0.1

    @property
    def protocol(self):
        return "points/1"


class PointDomain:
    summary = "points of a plane"
    recipe = PointRecipe
    default = "plane"
    tiny = {"epochs": 1}
    threads = 1

    def __init__(self, dataset, recipe, seed, data_root, device):
        self.data_hash, self.seed, self.recipe = "f" * 64, seed, recipe

    def model(self, recipe):
        torch.manual_seed(self.seed)
        return torch.nn.Linear(2, 4)

    def batches(self, recipe, epoch):
        yield torch.randn(8, 2, generator=generator(torch.device("cpu"), self.seed, epoch))

    def steps(self, recipe):
        return 1

    def contrasts(self, model, batch):
        return [both_views(model(batch), model(batch + recipe_noise(self.recipe)))]

    def evaluate(self, model):
        return Evaluation({"accuracy": 50.0}, "accuracy", {"validation": 40.0})


def recipe_noise(recipe):
    return recipe.noise
"""


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a domain."""
    (tmp_path / "pointset.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pointset", raising=False)
    announce(monkeypatch, EntryPoint("points", "pointset:PointDomain", registry.ENTRY_POINTS))


def announce(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)


def test_a_packages_domain_is_listed_without_its_code(points: None) -> None:
    assert "points     announced by a package: pointset:PointDomain" in list(listing.domains())
    assert "pointset" not in sys.modules


def test_a_packages_domain_trains_like_ours(points: None, tmp_path: Path) -> None:
    assert declaration("points").default == "plane"
    assert make_recipe("points", declaration("points").tiny).epochs == 1
    with pytest.raises(
        UserError, match="unknown recipe key of domain points 'nois': did you mean 'noise'"
    ):
        make_recipe("points", {"nois": 1})
    record, path = run(Request("points", "plane", "adnce", {}, {"epochs": 2}, tmp_path), seed=0)
    assert (record["status"], record["protocol"], record["recipe"]["noise"]) == (
        "ok",
        "points/1",
        0.1,
    )
    assert json.dumps(read(path)) == json.dumps(record)


def test_a_packages_domain_is_swept(points: None, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "domains: {points: {recipe: {noise: 0.2}}, graph: {}}\nlosses: [infonce]\nseeds: [0]\n"
    )
    found = plan.places(sweep_file.load(str(path)))
    assert [place.column for place in found] == ["plane", "motifs"]
    assert found[0].experiment.full_recipe.model_dump()["noise"] == 0.2


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [("graph", "theirs:Domain")],
            "two domains are named graph: contrastbench.domains.graph:GraphDomain and theirs",
        ),
        ([("new", "a:B"), ("new", "c:D")], "two domains are named new: a:B and c:D"),
        ([("new", "no_such_module:B")], "domain new: cannot import no_such_module:B"),
        ([("new", "json:B")], "domain new: cannot import json:B"),
        ([("new", "json:JSONDecoder")], "domain new: json:JSONDecoder has no attribute summary"),
    ],
)
def test_what_is_wrong_with_a_package_is_named(
    monkeypatch, entries: list[tuple[str, str]], message: str
) -> None:
    announce(
        monkeypatch, *(EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in entries)
    )
    with pytest.raises(UserError, match=message) as error:
        registry.domain_class("new")
    assert "\n" not in str(error.value)


def test_an_unknown_domain_answers_with_packages_too(points: None) -> None:
    with pytest.raises(UserError, match="unknown domain 'point': did you mean 'points'"):
        registry.check_domain("point")
