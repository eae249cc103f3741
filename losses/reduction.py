"""Reduce a loss to an equal or simpler loss by algebra, without torch."""

from contrastbench.losses.limits import Limit
from contrastbench.losses.pairing import Pairing
from contrastbench.losses.registry import describe, is_registered
from contrastbench.losses.spec import NONE, LossSpec


def reduced(loss: LossSpec, pairing: Pairing | None) -> LossSpec:
    """Return the simplest loss that trains exactly as this setting does.

    Exact limits are followed as far as they lead. Both losses have the same gradient.

    Args:
        loss: a loss with its parameters.
        pairing: facts about the contrasts; None: not known, so only what holds for all counts.

    >>> from contrastbench.losses.pairing import BOTH_VIEWS
    >>> reduced(LossSpec("hcl", {"beta": 0, "tau_plus": 0}), BOTH_VIEWS).label
    'infonce(temperature=0.5)'
    """
    seen: list[LossSpec] = []
    spec = full_spec(loss)
    while spec not in seen:
        seen.append(spec)
        limit = next((each for each in usable(spec, pairing) if each.is_at(spec.params)), None)
        spec = full_spec(target(limit, spec)) if limit else spec
    return spec


def simplest(loss: LossSpec, pairing: Pairing | None) -> LossSpec | None:
    """Return the simplest loss that a loss becomes at its limits, with what it is given.

    Limits that are approached count too, unless a given parameter keeps the loss from them.

    Args:
        loss: a loss with the parameters that stay as they are given.
        pairing: facts about the contrasts; None: not known.

    >>> simplest(LossSpec("rince"), None)
    LossSpec(name='infonce', params={})
    >>> simplest(LossSpec("rince", {"q": 0.5}), None) is None
    True
    """
    seen, simpler = [loss.name], loss
    while limits := [  # which no given parameter keeps the loss from
        limit
        for limit in usable(simpler, pairing)
        if limit.to not in seen
        and all(simpler.params.get(name, value) == value for name, value in limit.at.items())
    ]:
        simpler = target(limits[0], simpler)
        seen.append(simpler.name)
    return simpler if simpler is not loss else None


def usable(loss: LossSpec, pairing: Pairing | None) -> list[Limit]:
    """Return the limits of a loss that train alike under a pairing.

    Each is a registered loss: to plan the cells of a loss runs no code that it names.
    """
    limits = describe(loss.name).limits if loss.name != NONE else ()
    known = [limit for limit in limits if is_registered(limit.to)]
    return [limit for limit in known if limit.same_training and limit.holds(pairing)]


def target(limit: Limit, loss: LossSpec) -> LossSpec:
    """Return the loss at a limit, with the parameters that both share."""
    return LossSpec(limit.to, limit.target(loss.params, describe(limit.to).params))


def full_spec(loss: LossSpec) -> LossSpec:
    """Return the loss with all its parameters, by the name that it is looked up with."""
    if loss.name == NONE:
        return loss
    complete = loss.complete
    return LossSpec(loss.name if loss.code else complete.name, complete.params)
