"""The parameters that a loss has learned, as a record holds them."""

from typing import Any

from torch import nn

from contrastbench.benchmarks.records import schema
from contrastbench.losses.base import Loss, Sum

LARGEST = 16  # numbers of a vector that is kept whole


def learned(loss: Loss | None) -> dict[str, Any]:
    """Return the record's detail on the parameters that a loss has learned; {} without any.

    Those of a sum have the prefix of their term, as in its `params`.
    """
    terms = loss.prefixed if isinstance(loss, Sum) else {"": loss}
    values = {
        f"{prefix}.{name}".removeprefix("."): value(parameter)
        for prefix, term in terms.items()
        if term is not None
        for name, parameter in term.named_parameters()
        if parameter.requires_grad
    }
    return {"learned": values} if values else {}


def value(parameter: nn.Parameter) -> Any:
    """Return a scalar or a short vector as it is, and of anything else the shape."""
    shape = {"shape": list(parameter.shape)}
    if parameter.ndim > 1 or parameter.numel() > LARGEST or parameter.is_complex():
        return shape
    found = parameter.tolist()
    return shape if schema.unusable(found) is not None else found
