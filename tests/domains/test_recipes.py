"""Recipes from the command line's values: presets, and one line for a mistake."""

from typing import Any

import pytest
import torch
import yaml

from contrastbench.benchmarks.checks.domain import check_facts
from contrastbench.benchmarks.records.experiment import Experiment, filled, make_experiment
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.schema import OPEN, SharedProtocol
from contrastbench.domains.recipe import laid_over
from contrastbench.domains.registry import DOMAINS, declaration, make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from opened import tiny


def test_a_preset_gives_way_to_what_is_named_beside_it() -> None:
    recipe = make_recipe("tabular", {"preset": "renyicl", "epochs": 3})
    assert (recipe.epochs, recipe.batch_size, recipe.lr) == (3, 512, 0.3)
    assert recipe.widths == (2048, 2048, 4096, 4096, 8192)
    assert (
        make_recipe("tabular", {"preset": "small"}) == make_recipe("tabular", {}) == TabularRecipe()
    )


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_length_in_steps_takes_the_place_of_epochs(domain: str) -> None:
    work = make_experiment(domain, None, LossSpec("infonce"), {"steps": 7}, tiny=True)
    values = work.full_recipe.model_dump(mode="json")
    assert (values["steps"], "epochs" in values) == (7, False)
    assert make_recipe(domain, filled(domain, values)) == work.full_recipe
    assert make_recipe(domain, laid_over(values, {"epochs": 2})).length(5) == 10
    with pytest.raises(UserError, match="epochs=3 and steps=7 are two lengths of one training"):
        make_recipe(domain, {"steps": 7, "epochs": 3})
    with pytest.raises(UserError, match=r"score_at=\(3,\) counts epochs, and steps=7 has no"):
        make_recipe(domain, {"steps": 7, "score_at": [3]})


@pytest.mark.parametrize("domain", DOMAINS)
def test_all_and_none_of_the_positives_are_no_shares(domain: str) -> None:
    shares = [make_recipe(domain, {"permuted": x}).permuted for x in (False, True, 0.0, 1, 0.2)]
    assert [*map(str, shares)] == ["False", "True", "False", "True", "0.2"], "keys of records"
    with pytest.raises(UserError, match="permuted"):
        make_recipe(domain, {"permuted": 1.2})


@pytest.mark.parametrize("domain", ["image", "tabular"])
def test_classes_make_false_negatives_or_take_them_out(domain: str) -> None:

    def first(**own: Any) -> tuple[Any, Any]:
        made = tiny(domain, **{"pairing": "both_views", "batch_size": 32, **own})
        batch = next(iter(made.batches(0)))
        (contrast,) = made.contrasts(made.model(), batch)
        check_facts(contrast, made.recipe.pairing_facts)
        y = made.pool.labels if domain == "image" else made.pretraining.y
        return y[batch.rows], contrast

    y, contrast = first(batch_classes=2)
    assert y.unique(return_counts=True)[1].tolist() == [16, 16]
    assert contrast.count().unique().tolist() == [62]
    y, contrast = first(batch_classes=2, false_negatives=False)
    assert contrast.count().unique().tolist() == [32]
    y = y.repeat(2)
    assert torch.equal(contrast.anchor_id[:, None] == contrast.key_id, y[:, None] == y)
    with pytest.raises(UserError, match=r"there are .* classes, give no more"):
        first(batch_classes=32)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_preset_and_tiny_is_a_valid_recipe_that_a_record_can_hold(domain: str) -> None:
    for values in (
        declaration(domain).tiny,
        *({"preset": name} for name in declaration(domain).recipe.presets),
    ):
        recipe = make_recipe(domain, values)
        assert "preset" not in recipe.model_dump()
        assert make_recipe(domain, recipe.model_dump(mode="json")) == recipe


# the files of benchmarks/tables/protocols that state a preset, later ones over earlier ones, and
# what a preset has that no statement on all of its data says
PUBLISHED: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "adnce": ("image", ["simclr", "adnce-images"], {}),
    "attentionnce": ("image", ["simclr", "attentionnce"], {"positives": 4}),
    "renyicl-cifar": ("image", ["renyicl-cifar"], {"views": "hard", "stem_init": "kaiming"}),
    "renyicl-imagenet": (
        "image",
        ["renyicl-imagenet"],
        {"epochs": 100, "lr": 0.15 * 512**0.5, "randaugment": [2, 10.0], "local_crops": 6},
    ),
    "simclr-imagenet": (
        "image",
        ["simclr-imagenet"],
        {"epochs": 1000, "whole_pictures": True, "validation": 0.0},
    ),
    "renyicl": ("tabular", ["renyicl-tabular"], {"batch_size": 512, "lr": 0.3, "probe": "plain"}),
}


def stated(name: str) -> dict[str, Any]:
    """Return what a protocol states of all its data, but for what is another value for a reason."""
    path = catalogue.FOLDER / "protocols" / f"{name}.yaml"
    facts = SharedProtocol.model_validate(yaml.safe_load(path.read_text())).facts
    every = [fact for fact in facts if fact.source != OPEN and not fact.partial]
    recipes = [{k: v for k, v in fact.recipe.items() if k not in fact.why} for fact in every]
    return {key: value for recipe in recipes for key, value in recipe.items()}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_a_preset_is_what_its_protocol_states(preset: str) -> None:
    domain, protocols, beside = PUBLISHED[preset]
    expected = {key: value for name in protocols for key, value in stated(name).items()} | beside
    recipe = make_recipe(domain, {"preset": preset}).model_dump(mode="json")
    assert {key: recipe[key] for key in expected} == expected


def test_neighbours_follow_the_temperature_of_the_loss_if_the_recipe_says_so() -> None:
    """ADNCE's main.py: one `temperature` for the loss and for the weights of its kNN."""

    def temperature(loss: LossSpec, **values: object) -> float:
        return Experiment("image", "digits", loss, values).full_recipe.neighbours_temperature

    adnce = LossSpec("adnce", {"temperature": 0.4})
    assert temperature(adnce, preset="adnce") == 0.4
    assert (
        temperature(LossSpec("adnce"), preset="adnce")
        == LossSpec("adnce").complete.params["temperature"]
    )
    several = LossSpec("adnce + 0.5*dar", {"adnce.temperature": 0.2})
    assert temperature(several, preset="adnce") == 0.2, "a sum has its terms'"
    several = LossSpec("adnce + infonce", {"adnce.temperature": 0.2, "infonce.temperature": 0.3})
    with pytest.raises(UserError, match=r"has temperatures 0\.2, 0\.3: name that of the neigh"):
        temperature(several, preset="adnce")
    assert temperature(LossSpec("none"), preset="adnce") == 0.5
    assert temperature(LossSpec("dar"), preset="adnce") == 0.5
    assert temperature(adnce) == 0.5, "as always"
    assert temperature(adnce, preset="adnce", knn_temperature=0.1) == 0.1
    recorded = Experiment("image", "digits", adnce, {"preset": "adnce"}).recorded_recipes
    assert recorded[0]["knn_temperature"] == 0.4


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_serializer_of_pydantic_makes_an_error_of_a_ctrl_c(domain: str) -> None:
    """It would within one, and `bench run` would end in a traceback."""
    own = declaration(domain).recipe.__pydantic_decorators__
    assert not own.model_serializers
    assert not own.field_serializers
