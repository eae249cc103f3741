"""The parameters that a loss has learned, as a record has them."""

from typing import Any

from torch import Tensor

from contrastbench.benchmarks.records import schema
from contrastbench.losses.base import Loss, Sum

MAX_VECTOR = 16  # numbers of a vector that is kept whole


def learned_details(loss: Loss | None) -> dict[str, Any]:
    """Return the record's detail on the parameters that a loss has learned; {} without any.

    Those of a sum have the prefix of their term, as in its `params`. What is kept of each training
    sample is summed up in single numbers.
    """
    if loss is None:
        return {}
    loss.keep_in_range()  # after the last step
    terms = loss.prefixed if isinstance(loss, Sum) else {"": loss}
    values = {
        f"{prefix}.{name}".removeprefix("."): learned_value(tensor)
        for prefix, term in terms.items()
        for name, tensor in (*term.named_parameters(), *term.remembered().items())
        if tensor.requires_grad or name in term.remembered()
    }
    return {"learned": values} if values else {}


def learned_value(parameter: Tensor) -> Any:
    """Return a scalar or a short vector as it is, and of anything else the shape."""
    shape = {"shape": list(parameter.shape)}
    if parameter.ndim > 1 or parameter.numel() > MAX_VECTOR or parameter.is_complex():
        return shape
    value = parameter.tolist()
    return shape if schema.unstorable(value) is not None else value
