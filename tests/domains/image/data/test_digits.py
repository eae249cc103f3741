"""The embedded set `shifted-digits`: pixels say little, and training learns shapes."""

import torch

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.image import DECLARATION, ImageRecipe
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.losses import get_loss

MARGIN = 10  # points that training gains over the untrained encoder and over pixels, at least
CPU = torch.device("cpu")


def domain(seed: int, **recipe: object) -> ImageDomain:
    """Return the default set under a recipe of seconds."""
    values = {"encoder": "convnet", "epochs": 8, "probe": "quick", **recipe}
    return ImageDomain(DECLARATION.default, ImageRecipe(**values), seed, None, CPU)


def untrained(seed: int, **recipe: object) -> float:
    """Return the accuracy of an encoder without a training."""
    opened = domain(seed, **recipe)
    return opened.evaluate(opened.model()).metrics["accuracy"]


def test_its_pixels_are_the_same_on_every_machine() -> None:
    assert load_images("shifted-digits", 8, None, CPU)[1].startswith("bfef15728b82cb1c")


def test_it_has_the_digits_classes_in_their_order() -> None:
    moved, still = (load_images(name, 8, None, CPU)[0] for name in ("shifted-digits", "digits"))
    assert torch.equal(moved.test.labels, still.test.labels)
    assert len(moved.train) == len(still.train)


def test_a_trained_encoder_is_better_than_pixels_and_an_untrained_one() -> None:
    opened = domain(0)
    model, _ = train(opened, get_loss("infonce"))
    floor = max(untrained(0), untrained(0, encoder="raw"))
    assert opened.evaluate(model).metrics["accuracy"] > floor + MARGIN
