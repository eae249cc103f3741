"""Check inputs and outputs: one finite number, plain parameters, errors for nonsense."""

import json
import math
from functools import partial

import torch

from contrastbench.losses.laws.assertions import Build, assert_finite, close, raises_value_error
from contrastbench.losses.laws.random_contrasts import PAIRINGS, random_views, some_pairing


def check_randomness(build: Build, seed: int) -> None:
    """Two calls on the same batch agree."""
    contrast, loss = PAIRINGS["both_views"](random_views(seed, 6)), build()
    for two, why in (
        ((build(), build()), "draws random numbers"),
        ((loss, loss), "changes while it is evaluated"),
    ):
        try:
            value, again = (one(contrast) for one in two)
        except Exception:  # which the other checks name
            return
        same = torch.allclose(value, again, rtol=0, atol=0, equal_nan=True)
        assert same, f"the loss {why}: two calls on the same batch differ"


def check_scalar(build: Build, seed: int) -> None:
    """One finite number, for every pairing."""
    for pairing in PAIRINGS.values():
        value = build()(pairing(random_views(seed, 6)))
        assert value.shape == (), f"the loss has shape {tuple(value.shape)}, not one number"
        assert value.dtype == torch.float64, f"a float64 contrast gives a {value.dtype} loss"
        assert value.isfinite(), f"the loss is {value.item()}"


def check_batch_size(build: Build, seed: int) -> None:
    """Finite value and gradient for batches of 2 to 64 samples."""
    size = 2 + seed % 63
    assert_finite(build(), some_pairing(seed), random_views(seed, size))


def check_no_negatives(build: Build, seed: int) -> None:
    """A batch of one sample, which has no negatives, raises ValueError."""
    for name in ("both_views", "other_view"):
        contrast = PAIRINGS[name](random_views(seed, 1))
        raises_value_error(partial(build(), contrast), "a batch of one sample")


def check_parameters(build: Build, seed: int) -> None:
    """The parameters are plain data and make the same loss again; they reject nonsense."""
    loss, contrast = build(), PAIRINGS["both_views"](random_views(seed, 4))
    params = json.loads(json.dumps(loss.params))
    close(build(**params)(contrast), loss(contrast), 0)
    for key, value in params.items():
        nonsense = (
            [math.nan, math.inf, -math.inf, "0.5", None, True]
            if isinstance(value, float)
            else ["no such", 3, None]
        )
        for bad in nonsense:
            raises_value_error(partial(build, **{key: bad}), f"{key}={bad!r}")
