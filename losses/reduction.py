"""Reduce a loss to an equal or simpler loss by algebra, without torch."""

from collections.abc import Container

from contrastbench.losses.limits import Limit
from contrastbench.losses.pairing import Pairing
from contrastbench.losses.registry import describe, is_registered
from contrastbench.losses.spec import NONE, LossSpec


def reduced(loss: LossSpec, pairing: Pairing | None, free: Container[str] = ()) -> LossSpec:
    """Return the simplest loss that trains exactly as this setting does.

    Exact limits are followed as far as they lead. Both losses have the same gradient.

    Args:
        loss: a loss with its parameters.
        pairing: facts about the contrasts; None: not known, so only what holds for all counts.
        free: names of parameters that a search gives any value, in both losses.

    >>> from contrastbench.losses.pairing import BOTH_VIEWS
    >>> hcl = LossSpec("hcl", {"beta": 0, "tau_plus": 0})
    >>> reduced(hcl, BOTH_VIEWS).label, reduced(hcl, BOTH_VIEWS, ["temperature"]).label
    ('infonce(temperature=0.5)', 'infonce')
    """
    seen: list[LossSpec] = []
    spec = full_spec(loss, free)
    while spec not in seen:
        seen.append(spec)
        limit = next((each for each in usable(spec, pairing) if each.is_at(spec.params)), None)
        spec = full_spec(target(limit, spec), free) if limit else spec
    return spec


def usable(loss: LossSpec, pairing: Pairing | None) -> list[Limit]:
    """Return the limits of a loss that train alike under a pairing.

    Each is a registered loss: to plan the cells of a loss runs no code that it names.
    """
    limits = describe(loss.name).limits if loss.name != NONE else ()
    known = [limit for limit in limits if is_registered(limit.to)]
    return [limit for limit in known if limit.same_training and limit.holds(pairing)]


def target(limit: Limit, loss: LossSpec) -> LossSpec:
    return LossSpec(limit.to, limit.target(loss.params, describe(limit.to).params))


def full_spec(loss: LossSpec, free: Container[str] = ()) -> LossSpec:
    """Return the loss, by the name that it is looked up with, and its parameters but free ones."""
    if loss.name == NONE:
        return loss
    complete = loss.complete
    params = {name: value for name, value in complete.params.items() if name not in free}
    return LossSpec(loss.name if loss.code else complete.name, params)
