"""Print the lists of losses of `bench list`, for which their registry is enough."""

from collections.abc import Iterator

from contrastbench.errors import UserError
from contrastbench.losses.registry import FAMILIES, OURS, Description, aliases, describe
from contrastbench.losses.registry import losses as registered_losses


def loss_lines() -> Iterator[str]:
    for name, path in registered_losses().items():
        if name not in OURS:  # to describe it would import it, and torch with it
            yield f"{name}\n    Of a package: {path}"
            continue
        loss = described(name)
        params = ", ".join(f"{key}={value}" for key, value in loss.params.items())
        ranges = "; ".join(f"{key} {r}" for key, r in loss.ranges.items())
        limits = "".join(f"\n    is {limit}" for limit in loss.limits)
        also = f"\n    also named {', '.join(aliases(name))}" if aliases(name) else ""
        yield f"{name}({params})\n    {loss.summary}\n    {ranges}{limits}{also}"
    yield "none\n    No training: the encoder as it is."


def described(name: str) -> Description:
    """Describe a loss, or say in its place why it cannot be, so that the others are listed."""
    try:
        return describe(name)
    except UserError as error:
        return Description(str(error), {})


def families() -> Iterator[str]:
    for family, members in FAMILIES.items():
        yield family
        for name in members:
            also = f" (also {', '.join(aliases(name))})" if aliases(name) else ""
            yield f"    {name:16} {described(name).summary}{also}"
    others = {name: path for name, path in registered_losses().items() if name not in OURS}
    if others:
        yield "of packages"
        yield from (f"    {name:16} {path}" for name, path in others.items())
