"""Random parameters and batches for every loss, within what float32 can hold."""

from random import Random
from typing import Any

from contrastbench.losses import LOSSES, Contrast
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from contrastbench.losses.ranges import Choice
from contrastbench.losses.registry import describe
from oracles import DRAWN

SUM = "infonce + 0.5*dar"


def numbers(name: str) -> list[str]:
    """Return the numbers that a loss takes, without its temperature, as `DRAWN` names them."""
    given = describe(name).ranges.items()
    known = [key for key, range_ in given if not isinstance(range_, Choice)]
    return [f"{name}.{key}" for key in known if key != "temperature"]


# losses/test_oracles.py fails where one is missing
NAMES = [name for name in LOSSES if DRAWN.keys() >= {*numbers(name)}]


def random_params(name: str, seed: int) -> dict[str, Any]:
    """Draw each choice, and each number between two others or one of some: its default, an end."""
    r, about = Random(seed), describe(name)
    if name == "adnce":
        return random_adnce(r)
    params: dict[str, Any] = {}
    for key, range_ in about.ranges.items():
        if isinstance(range_, Choice):
            params[key] = r.choice(range_.choices)
        elif key.endswith("temperature"):
            params[key] = r.uniform(0.1, 1)
        else:
            some = DRAWN[f"{name}.{key}"]
            params[key] = r.choice([r.uniform(*some[:2]), r.choice([about.params[key], *some])])
    return params


def random_adnce(r: Random) -> dict[str, Any]:
    if r.random() < 0.3:
        # exp(s / tau) runs up to 20 here; a narrower weight would leave a row of the oracle empty
        wide = {"temperature": (0.33, 1), "mu": (0, 2), "sigma": (2, 5)}
        return {"variant": "paper", **{key: r.uniform(*ends) for key, ends in wide.items()}}
    weight = r.choice(["gaussian", "gamma", "rayleigh", "chi2"])
    mu, sigma = (r.uniform(*DRAWN[f"adnce.{key}"]) for key in ("mu", "sigma"))
    if weight == "gaussian":
        mu = r.uniform(-0.5, 2)
    return {"temperature": r.uniform(0.2, 1), "mu": mu, "sigma": sigma, "weight": weight}


def random_contrast(seed: int) -> Contrast:
    """A small batch in one of the pairings, of numbers that float32 has too."""
    r = Random(seed)
    views = random_views(seed, r.randint(2, 4), dim=r.randint(3, 5))
    return LAW_PAIRINGS[r.choice(list(LAW_PAIRINGS))]([v.float().double() for v in views])
