"""Policies of a recipe's views, features of images as they are, and parts of them."""

from dataclasses import replace

import pytest
import torch

from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.preprocessing import Preprocessing, policies, published_policy
from contrastbench.domains.image.sampling import held_out_split
from contrastbench.domains.image.views.policies import Policy
from contrastbench.domains.model import Raw
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import UserError
from made_images import grey_levels as images
from made_images import small_model as model

PREPROCESSING = Preprocessing((0.5,) * 3, (0.25,) * 3, 8)


def test_features_are_those_of_single_images_in_order() -> None:
    net, whole = model(), images(300)
    found = PREPROCESSING.features(net, whole)
    assert torch.equal(found.y, whole.labels)
    x = (whole.pixels[-1:].float() / 255 - 0.5) / 0.25
    with torch.no_grad():
        assert torch.allclose(found.x[-1:], net.eval().encoder(x), atol=1e-5)
    raw = PREPROCESSING.features(Raw(), whole)
    assert torch.allclose(raw.x[-1:], x.flatten(1), atol=1e-6)


def test_features_that_are_no_numbers_are_said() -> None:
    net = model()
    with torch.no_grad():
        net.encoder[0].weight.fill_(float("nan"))
    with pytest.raises(UserError, match="features are not finite"):
        PREPROCESSING.features(net, images())


def test_the_views_of_simclr_on_imagenet_are_those_of_its_appendix_a() -> None:
    """Jitter of 0.8, 0.8, 0.8, 0.2 in strength 1, blur of every second view."""
    recipe = make_recipe("image", {"preset": "simclr-imagenet"})
    strength = {"jitter": 0.8, "strength": (0.8, 0.8, 0.8, 0.2), "grey": 0.2}
    view = Policy(224, scale=(0.08, 1.0), flip=0.5, blur=0.5, **strength)
    assert policies(recipe) == [view, view]
    small = make_recipe("image", {"preset": "simclr-imagenet", "jitter_strength": 0.5})
    assert policies(small)[0].strength == (0.4, 0.4, 0.4, 0.1)


def test_the_views_of_renyicl_on_imagenet_are_those_of_b3_and_its_code() -> None:
    """Jitter of 0.4, 0.4, 0.2, 0.1; blur and solarisation differ; local crops have less."""

    def found(**values: object) -> list[Policy]:
        return policies(make_recipe("image", {"preset": "renyicl-imagenet", **values}))

    shared = {"flip": 0.5, "jitter": 0.8, "strength": (0.4, 0.4, 0.2, 0.1), "grey": 0.2}
    whole = {**shared, "size": 224, "scale": (0.2, 1.0), "randaugment": (2, 10.0)}
    first, second = Policy(**whole, blur=1.0), Policy(**whole, blur=0.1, solarise=0.2)
    local = Policy(**shared, size=96, scale=(0.05, 0.2), blur=0.1)
    assert found() == found(views="hard") == [first, second, *[local] * 6], (
        "no RandomErasing with multi-crop"
    )
    hard = [replace(kind, erasing=0.2) for kind in (first, second)]
    assert found(views="hard", local_crops=0) == hard, "both without it"
    plain = [replace(kind, randaugment=None) for kind in (first, second)]
    assert found(views="base", local_crops=0, randaugment=None) == plain


def test_other_recipes_have_one_policy_for_all_views() -> None:
    for values in ({}, {"views": "hard", "positives": 3}, {"preset": "attentionnce"}):
        recipe = make_recipe("image", values)
        assert policies(recipe) == [published_policy(recipe)] * (2 + recipe.positives)


def rows(part: Images, whole: Images) -> list[int]:
    """The numbers of a part's images in the whole."""
    return [int((whole.pixels == image).flatten(1).all(dim=1).nonzero()) for image in part.pixels]


def test_the_validation_part_has_its_share_of_each_class_and_the_rest_is_training() -> None:
    whole = images()
    train, validation = held_out_split(whole, 0.2, 0)
    assert validation.labels.bincount().tolist() == [2, 2, 2, 2]
    assert sorted(rows(train, whole) + rows(validation, whole)) == list(range(40))
    assert rows(held_out_split(whole, 0.2, 0)[1], whole) == rows(validation, whole)
    assert rows(held_out_split(whole, 0.2, 1)[1], whole) != rows(validation, whole)


def test_without_a_share_there_is_no_validation_part_and_a_limit_keeps_so_many() -> None:
    train, validation = held_out_split(images(), 0.0, 0, 10)
    assert (len(train), validation) == (10, None)
    train, validation = held_out_split(images(), 0.5, 0, 20)
    assert len(train) + len(validation) == 20
