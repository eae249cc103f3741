"""At its declared limits a loss is the loss that it names."""

from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import random_contrasts
from contrastbench.losses.laws.assertions import Build, check_close, law, value_and_gradient
from contrastbench.losses.laws.random_contrasts import PairingFunction as Pair
from contrastbench.losses.limits import Limit
from contrastbench.losses.pairing import Pairing
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import get_loss


@law(
    "the loss is not the one that it declares as its limit",
    "declare what the formula shows, such as constant=True, factor or one_positive",
)
def check_limits(build: Build, seed: int) -> None:
    """At its declared limits it has the value and the gradient of the loss that it names."""
    for limit in build().limits:
        check_everywhere(limit, build, seed)


def check_everywhere(limit: Limit, build: Build, seed: int = 5) -> None:
    for name, pair in random_contrasts.LAW_PAIRINGS.items():
        try:
            check_limit(limit, build, pair, seed)
        except AssertionError as error:
            raise AssertionError(f"{name}: it is declared as {limit}: {error}") from None


def check_limit(limit: Limit, build: Build, pair: Pair, seed: int) -> None:
    """Compare both losses on two batches of one size; a constant is the same on both."""
    loss = build(**limit.near).double()
    other = get_loss(limit.to, **limit.target(loss.params, describe(limit.to).params))
    other = random_contrasts.with_sample_numbers(other.double().train(loss.training))
    factor = float(getattr(loss, limit.factor)) if limit.factor else 1.0
    offsets = []
    for drawn_by in (seed, seed + 1):
        views = random_contrasts.random_views(drawn_by, 2 + seed % 6, grad=True)
        contrast = pair(views)
        if not limit.holds(pairing_of(contrast)):
            return
        # parameters that either learns come last, and are not compared
        value, *gradients = value_and_gradient(loss, contrast, views)[: 1 + len(views)]
        wanted, *slopes = (factor * x for x in value_and_gradient(other, contrast, views))
        for gradient, slope in zip(gradients, slopes, strict=False):
            check_close(gradient, slope, limit.tolerance)
        offsets.append(value - wanted)
    if not limit.gradient_only:
        check_close(offsets[1], offsets[0] if limit.constant else 0 * offsets[0], limit.tolerance)


def pairing_of(contrast: Contrast) -> Pairing:
    (positives,) = contrast.shapes()["padding"][1:]
    return Pairing(
        contrast.positive_in_denominator,
        positives == 1 and contrast.padding is None,
        contrast.mean_over_negatives,
        contrast.views is not None,
        contrast.own_view,
    )
