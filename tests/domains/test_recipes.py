"""Recipes from the command line's values: presets, and one line for a mistake."""

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains.registry import DOMAINS, declaration, make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec


def test_a_preset_gives_way_to_what_is_named_beside_it() -> None:
    recipe = make_recipe("tabular", {"preset": "renyicl", "epochs": 3})
    assert (recipe.epochs, recipe.batch_size, recipe.lr) == (3, 512, 0.3)
    assert recipe.widths == (2048, 2048, 4096, 4096, 8192)
    assert (
        make_recipe("tabular", {"preset": "small"}) == make_recipe("tabular", {}) == TabularRecipe()
    )


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_preset_and_tiny_is_a_valid_recipe_that_a_record_can_hold(domain: str) -> None:
    for values in (
        declaration(domain).tiny,
        *({"preset": name} for name in declaration(domain).recipe.presets),
    ):
        recipe = make_recipe(domain, values)
        assert "preset" not in recipe.model_dump()
        assert make_recipe(domain, recipe.model_dump(mode="json")) == recipe


def test_presets_are_what_the_papers_say() -> None:
    renyicl, scarf = (make_recipe("tabular", {"preset": name}) for name in ("renyicl", "scarf"))
    assert (renyicl.maxout, renyicl.projection, renyicl.epochs) == (4, (2048, 128), 500)
    assert (renyicl.optimizer, renyicl.momentum, renyicl.schedule, renyicl.rate) == (
        "sgd",
        0.9,
        "cosine",
        0.2,
    )
    assert (renyicl.pairing, renyicl.choice) == ("query_key", "each")
    assert (scarf.views, scarf.rate, scarf.choice, scarf.pairing) == (
        "corruption",
        0.6,
        "exact",
        "one_way",
    )
    assert (scarf.widths, scarf.batch_size, scarf.optimizer, scarf.lr) == (
        (256,) * 4,
        128,
        "adam",
        1e-3,
    )


def test_presets_of_images_are_what_the_papers_say() -> None:
    adnce, attention, cifar, imagenet = (
        make_recipe("image", {"preset": name})
        for name in ("adnce", "attentionnce", "renyicl-cifar", "renyicl-imagenet")
    )
    assert (adnce.encoder, adnce.width, adnce.projection, adnce.size) == (
        "resnet50",
        1.0,
        (512, 128),
        32,
    )
    assert (adnce.optimizer, adnce.lr, adnce.weight_decay, adnce.schedule) == (
        "adam",
        1e-3,
        1e-6,
        "constant",
    )
    assert (adnce.batch_size, adnce.epochs, adnce.probe, adnce.knn_k, adnce.views) == (
        256,
        400,
        "paper",
        200,
        "base",
    )
    assert (adnce.stem_init, cifar.stem_init, imagenet.stem_init) == ("pytorch", *["kaiming"] * 2)
    assert attention == adnce.model_copy(update={"positives": 4})
    assert (cifar.encoder, cifar.projection, cifar.epochs, cifar.views) == (
        "resnet18",
        (2048, 128),
        500,
        "hard",
    )
    assert (cifar.optimizer, cifar.lr, cifar.momentum, cifar.weight_decay) == (
        "sgd",
        0.5,
        0.9,
        5e-4,
    )
    assert (imagenet.pairing, imagenet.projection, imagenet.projection_norm) == (
        "query_key",
        (4096, 256),
        True,
    )
    assert (imagenet.zero_init_residual, imagenet.predictor_bias) == (True, False), (
        "main_renyicl.py, builder.py"
    )
    assert imagenet.whole_pictures, "RandomResizedCrop of ImageFolder's pictures"
    assert (imagenet.randaugment, cifar.randaugment) == ((2, 10.0), None), "B.3; B.4 by its views"
    assert (imagenet.optimizer, imagenet.momentum, imagenet.weight_decay, imagenet.ema) == (
        "lars",
        0.9,
        1.5e-6,
        0.99,
    )
    assert imagenet.lr == pytest.approx(0.15 * 512**0.5)
    assert (imagenet.local_crops, imagenet.local_size, imagenet.min_scale) == (6, 96, 0.2)
    for paper in (adnce, attention, cifar, imagenet):
        assert paper.validation == 0, "the papers train on all training images"


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


@pytest.mark.parametrize(
    ("domain", "values", "message"),
    [
        (
            "tabular",
            {"preset": "renycl"},
            "unknown preset of domain tabular 'renycl': did you mean 'renyicl'",
        ),
        ("graph", {"epochs": 20, "score_at": [10, 20]}, "score_at=20 is not before the last of 20"),
        ("graph", {"score_at": [0]}, "score_at.*greater than or equal to 1"),
        ("graph", {"preset": "small"}, "unknown preset of domain graph 'small'"),
        ("tabular", {"rate": 0.0}, "rate=0.0"),
        ("tabular", {"maxout": 3}, "the last width 512 has no 3 equal sets"),
        ("tabular", {"widths": [8, 6]}, "the last width 6 has no 4 equal sets"),
        ("tabular", {"widths": []}, "widths"),
        ("tabular", {"widths": [8, 0]}, "widths"),
        ("tabular", {"projection": [8]}, "projection"),
        ("tabular", {"views": "cutout"}, "views='cutout'"),
        ("image", {"probe_lr": 0.01}, "probe_lr is of probes that are trained on views, not lbfgs"),
        ("image", {"randaugment": [-1, 5.0]}, "randaugment.*greater than or equal to 0"),
        ("image", {"randaugment": [2, 100.0]}, "randaugment.*less than or equal to 10"),
    ],
)
def test_a_mistake_is_one_line(domain: str, values: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        make_recipe(domain, values)
    assert "\n" not in str(error.value)
